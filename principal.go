package signalbox

import (
	"slices"
	"strings"
	"time"
)

// Scope is a right of a principal.
type Scope string

// The scopes. Admin includes all others.
const (
	ScopeRead     Scope = "read"
	ScopeSubmit   Scope = "submit"
	ScopeCancel   Scope = "cancel"
	ScopeRelease  Scope = "release" // take slots away, clear lanes
	ScopeAdmin    Scope = "admin"
	ScopeTool     Scope = "tool"
	ScopeTerminal Scope = "terminal"
	ScopeAgent    Scope = "agent"    // register and beat, as the agent that the token names
	ScopeSchedule Scope = "schedule" // make, change and fire schedules
)

// Scopes lists all scopes.
func Scopes() []Scope {
	return []Scope{ScopeRead, ScopeSubmit, ScopeCancel, ScopeRelease, ScopeAdmin, ScopeTool, ScopeTerminal, ScopeAgent, ScopeSchedule}
}

// PrincipalKind says what a principal is.
type PrincipalKind string

// The kinds of principals.
const (
	PrincipalUser    PrincipalKind = "user"
	PrincipalAgent   PrincipalKind = "agent"
	PrincipalService PrincipalKind = "service" // a program, named by its token
)

// Principal is who asks, as proved by a token or a login. The zero Principal
// is an anonymous caller, with no right at all.
type Principal struct {
	Kind    PrincipalKind
	ID      string // id of the user, name of the agent, name of the service
	Email   string // of a user
	TokenID string // of the token that was shown
	Scopes  []Scope
	Agents  []string // the only agents it may use and see; empty: all
	Addr    string   // where it asks from
	// Run is the execution whose token was shown, "" for any other token. All
	// that it asks for is asked for within that execution.
	Run string
}

// Key names the principal in rows: "user:ID", "agent:NAME", "service:NAME", or
// "" for nobody in particular.
func (p Principal) Key() string {
	if p.Kind == "" {
		return ""
	}
	return string(p.Kind) + ":" + p.ID
}

// String names the principal for people.
func (p Principal) String() string {
	switch {
	case p.Kind == "" && (p.Addr == "" || p.Addr == "local"):
		return "a local caller"
	case p.Kind == "":
		return "a caller at " + p.Addr
	case p.Email != "":
		return p.Email
	}
	return string(p.Kind) + " " + p.ID
}

// Has reports whether the principal has the right.
func (p Principal) Has(s Scope) bool {
	return slices.Contains(p.Scopes, s) || slices.Contains(p.Scopes, ScopeAdmin)
}

// Limited reports whether the principal may see and use some agents only.
func (p Principal) Limited() bool { return len(p.Agents) > 0 }

// MayUse reports whether its limits let it use and see that agent.
func (p Principal) MayUse(agent string) bool {
	return !p.Limited() || slices.Contains(p.Agents, agent)
}

// NoAgent is what a principal with limits is told of an agent that it may not
// use: the same whether there is such an agent or not.
func (p Principal) NoAgent(name string) *Error {
	return &Error{Code: CodeNotFound, Field: "agent",
		Message: "no agent is named " + name + " among those that this token may use: " + strings.Join(p.Agents, ", ")}
}

// Sees reports whether it may see what has that owner, queue and agent: all
// without limits, else what is its own and what belongs to its agents.
func (p Principal) Sees(owner, queue, agent string) bool {
	if !p.Limited() || (owner != "" && owner == p.Key()) {
		return true
	}
	if name, ok := OnlyAgent(queue); ok {
		return p.MayUse(name)
	}
	return agent != "" && p.MayUse(agent)
}

// MayRead reports whether it may read what belongs to owner: with the right to
// read, else what is its own.
func (p Principal) MayRead(owner string) bool {
	return p.Has(ScopeRead) || (owner != "" && owner == p.Key())
}

// SeesTask is Sees for a task.
func (p Principal) SeesTask(t *Task) bool { return p.Sees(t.Owner, t.Queue, t.Agent) }

// OwnerUser returns the id of the user that an owner key names, if it does.
func OwnerUser(owner string) (id string, ok bool) { return ownerOf(owner, PrincipalUser) }

// OwnerAgent returns the name of the agent that an owner key names, if it does.
func OwnerAgent(owner string) (name string, ok bool) { return ownerOf(owner, PrincipalAgent) }

// ownerOf returns "" for an owner of another kind: callers that ask for the
// name alone must not be handed the whole key.
func ownerOf(owner string, kind PrincipalKind) (id string, ok bool) {
	if id, ok = strings.CutPrefix(owner, string(kind)+":"); !ok {
		return "", false
	}
	return id, true
}

// TokenByUp is CreatedBy of the tokens that signalbox up makes for its own
// agents at each start: the audit log has no row of them.
const TokenByUp = "signalbox up"

// Token is the row of a credential. Its secret is shown once and stored as a
// hash.
type Token struct {
	ID        string // "tok-" and letters
	Login     bool   // made by a login; it stands in a cookie and is not listed
	Name      string
	Hash      []byte // SHA-256 of the secret, which has 256 random bits
	Kind      PrincipalKind
	Principal string // id of the user, name of the agent; for a service the token's name
	Scopes    []Scope
	Agents    []string
	CreatedAt time.Time
	CreatedBy string
	ExpiresAt time.Time // zero: never
	RevokedAt time.Time // zero: in force
}

// Role is what a user may do.
type Role string

// The roles, from the seed execution-queue.
const (
	RoleAdmin Role = "admin" // everything
	RoleUser  Role = "user"  // read, submit, cancel, tool, schedule
)

// Scopes are the rights of a role.
func (r Role) Scopes() []Scope {
	switch r {
	case RoleAdmin:
		return Scopes()
	case RoleUser:
		return []Scope{ScopeRead, ScopeSubmit, ScopeCancel, ScopeTool, ScopeSchedule}
	}
	return nil
}

// User is the row of a person who can log in.
type User struct {
	ID        string // a name, as ValidName has it
	Email     string
	Password  string // argon2id, in the PHC string form
	Role      Role
	Agents    []string // the only agents that the user may use and see; empty: all
	CreatedAt time.Time
	Disabled  bool
}
