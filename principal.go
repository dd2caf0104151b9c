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
	ScopeRelease  Scope = "release" // release slots, clear lanes
	ScopeAdmin    Scope = "admin"
	ScopeTool     Scope = "tool"
	ScopeTerminal Scope = "terminal"
	ScopeAgent    Scope = "agent"    // register and send heartbeats as the agent that the token names
	ScopeSchedule Scope = "schedule" // create, change and fire schedules
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

// Principal is a caller, authenticated by a token or a login. The zero Principal
// is an anonymous caller without any rights.
type Principal struct {
	Kind    PrincipalKind
	ID      string // id of the user, name of the agent, name of the service
	Email   string // of a user
	TokenID string // id of the token that was used
	Scopes  []Scope
	Agents  []string // the only agents it may use and see; empty: all
	Addr    string   // address that it calls from
	// Run is the execution whose token was used; "" for any other token. All its
	// requests are made within that execution.
	Run string
}

// Key names the principal in rows: "user:ID", "agent:NAME", "service:NAME", or
// "" for an unknown caller.
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

// Has reports whether the principal has the scope.
func (p Principal) Has(s Scope) bool {
	return slices.Contains(p.Scopes, s) || slices.Contains(p.Scopes, ScopeAdmin)
}

// Limited reports whether the principal may see and use only some agents.
func (p Principal) Limited() bool { return len(p.Agents) > 0 }

// MayUse reports whether the principal may use and see that agent.
func (p Principal) MayUse(agent string) bool {
	return !p.Limited() || slices.Contains(p.Agents, agent)
}

// NoAgent returns the error for a limited principal that names an agent which it may not
// use. It is the same whether the agent exists or not.
func (p Principal) NoAgent(name string) *Error {
	return &Error{Code: CodeNotFound, Field: "agent",
		Message: "no agent is named " + name + " among those that this token may use: " + strings.Join(p.Agents, ", ")}
}

// Sees reports whether the principal may see an object with that owner, queue and agent. A
// limited principal sees only its own objects and those of its agents.
func (p Principal) Sees(owner, queue, agent string) bool {
	if !p.Limited() || (owner != "" && owner == p.Key()) {
		return true
	}
	if name, ok := OnlyAgent(queue); ok {
		return p.MayUse(name)
	}
	return agent != "" && p.MayUse(agent)
}

// MayRead reports whether the principal may read what belongs to owner: anything with the
// read scope, else only its own.
func (p Principal) MayRead(owner string) bool {
	return p.Has(ScopeRead) || (owner != "" && owner == p.Key())
}

// SeesTask is Sees for a task.
func (p Principal) SeesTask(t *Task) bool { return p.Sees(t.Owner, t.Queue, t.Agent) }

// OwnerUser returns the id of the user in an owner key; ok is false for other owners.
func OwnerUser(owner string) (id string, ok bool) { return ownerOf(owner, PrincipalUser) }

// OwnerAgent returns the name of the agent in an owner key; ok is false for other owners.
func OwnerAgent(owner string) (name string, ok bool) { return ownerOf(owner, PrincipalAgent) }

// ownerOf returns "" for an owner of another kind, so that callers which ignore ok do not
// get the whole key.
func ownerOf(owner string, kind PrincipalKind) (id string, ok bool) {
	if id, ok = strings.CutPrefix(owner, string(kind)+":"); !ok {
		return "", false
	}
	return id, true
}

// TokenByUp is Token.CreatedBy of the tokens that signalbox up creates for its own
// agents at each start. The audit log has no rows for them.
const TokenByUp = "signalbox up"

// Token is the row of a credential. Its secret is shown once and stored as a
// hash.
type Token struct {
	ID        string // "tok-" and letters
	Login     bool   // created by a login; kept in a cookie and not listed
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

// Role is a set of rights of a user.
type Role string

// The roles, from the seed execution-queue.
const (
	RoleAdmin Role = "admin" // everything
	RoleUser  Role = "user"  // read, submit, cancel, tool, schedule
)

// Scopes returns the rights of a role.
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
	ID        string // a valid name (ValidName)
	Email     string
	Password  string // argon2id, in the PHC string format
	Role      Role
	Agents    []string // the only agents that the user may use and see; empty: all
	CreatedAt time.Time
	Disabled  bool
}
