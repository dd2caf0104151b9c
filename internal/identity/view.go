package identity

import (
	"slices"
	"time"

	"github.com/signalbox-ai/signalbox"
)

// view is the content of the store at its last read. It is immutable.
type view struct {
	tokens map[string]*credential
	agents map[string][]*credential // tokens of agents, by the agent's name
	users  map[string]signalbox.User
	admin  bool // a credential with scope admin exists that was not revoked
}

// credential is a token with its principal.
type credential struct {
	row    signalbox.Token
	who    signalbox.Principal
	reason string // why it is refused, apart from its expiry; "": it is valid
}

func newView(tokens []signalbox.Token, users []signalbox.User) *view {
	v := &view{tokens: make(map[string]*credential, len(tokens)), agents: map[string][]*credential{}, users: make(map[string]signalbox.User, len(users))}
	for _, u := range users {
		v.users[u.ID] = u
		v.admin = v.admin || logsInAsAdmin(&u)
	}
	for _, t := range tokens {
		c := v.credential(t)
		v.tokens[t.ID] = c
		if t.Kind == signalbox.PrincipalAgent {
			v.agents[t.Principal] = append(v.agents[t.Principal], c)
		}
		v.admin = v.admin || c.admin()
	}
	return v
}

// logsInAsAdmin reports whether the user can log in and is an admin.
func logsInAsAdmin(u *signalbox.User) bool {
	return u.Role == signalbox.RoleAdmin && !u.Disabled && u.Password != ""
}

// admin reports whether the credential keeps the director closed and manageable. Logins do
// not: they come from a user's password and end within hours.
func (c *credential) admin() bool {
	return c.reason == "" && !c.row.Login && c.who.Has(signalbox.ScopeAdmin)
}

func (c *credential) expired(now time.Time) bool {
	return !c.row.ExpiresAt.IsZero() && !now.Before(c.row.ExpiresAt)
}

// service returns the valid token of a service, nil if there is none.
func (v *view) service(name string, now time.Time) *signalbox.Token {
	for _, c := range v.tokens {
		if c.row.Kind == signalbox.PrincipalService && c.row.Principal == name && c.reason == "" && !c.expired(now) {
			return &c.row
		}
	}
	return nil
}

func (v *view) credential(t signalbox.Token) *credential {
	c := &credential{row: t, who: signalbox.Principal{Kind: t.Kind, ID: t.Principal, TokenID: t.ID, Scopes: t.Scopes, Agents: t.Agents}}
	if !t.RevokedAt.IsZero() {
		c.reason = "it was revoked"
	}
	switch t.Kind {
	case signalbox.PrincipalAgent:
		if len(t.Agents) > 0 { // an agent always sees itself
			c.who.Agents = append(slices.Clone(t.Agents), t.Principal)
		}
	case signalbox.PrincipalUser:
		v.ofUser(c)
	}
	return c
}

// ofUser limits a token to the present rights of its user: a token ends with its user, and
// loses what the user's role loses.
func (v *view) ofUser(c *credential) {
	u, ok := v.users[c.row.Principal]
	switch {
	case !ok || c.row.CreatedAt.Before(u.CreatedAt): // it belongs to an earlier user with the same name
		c.reason = "its user was removed"
		return
	case u.Disabled:
		c.reason = "its user is disabled"
	}
	c.who.Email = u.Email
	if c.row.Login {
		c.who.Scopes = u.Role.Scopes()
	} else if u.Role != signalbox.RoleAdmin {
		allowed := u.Role.Scopes()
		c.who.Scopes = slices.DeleteFunc(slices.Clone(c.row.Scopes), func(s signalbox.Scope) bool { return !slices.Contains(allowed, s) })
	}
	c.who.Agents = both(c.row.Agents, u.Agents)
}

// noAgent is a limit that allows no agent: no agent can have this name, and an empty list
// would mean all agents.
const noAgent = "-"

// both returns the agents that both limits allow.
func both(a, b []string) []string {
	switch {
	case len(a) == 0:
		return b
	case len(b) == 0:
		return a
	}
	shared := slices.DeleteFunc(slices.Clone(a), func(name string) bool { return !slices.Contains(b, name) })
	if len(shared) == 0 {
		return []string{noAgent}
	}
	return shared
}

// keepsAdmin reports whether a valid admin credential remains without those that without
// matches.
func (v *view) keepsAdmin(now time.Time, without func(t *signalbox.Token, userID string) bool) bool {
	for _, u := range v.users {
		if logsInAsAdmin(&u) && !without(nil, u.ID) {
			return true
		}
	}
	for _, c := range v.tokens {
		user := ""
		if c.row.Kind == signalbox.PrincipalUser {
			user = c.row.Principal
		}
		if c.admin() && !c.expired(now) && !without(&c.row, user) {
			return true
		}
	}
	return false
}
