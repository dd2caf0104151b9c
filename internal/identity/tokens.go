package identity

import (
	"context"
	"regexp"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/signalbox-ai/signalbox"
)

const (
	// MaxTokens limits the number of tokens, MaxUsers that of users: all are in memory.
	MaxTokens = 10_000
	MaxUsers  = 10_000
	// maxLimits limits the number of agents in the limit of a token or user.
	maxLimits = 100
	// keepEnded is how long revoked and expired tokens are shown.
	keepEnded = 30 * 24 * time.Hour
	// maxLife is the maximum lifetime of a token.
	maxLife = 10 * 365 * 24 * time.Hour
)

// NewToken describes a token to create. Without User and Agent it is the token of a
// service with the token's name.
type NewToken struct {
	Name    string
	User    string
	Agent   string
	Scopes  []signalbox.Scope
	Agents  []string
	Expires time.Duration // 0: never
	By      string        // who creates it, for display
}

// Known is a token for display, with the time of its last use since the start of the
// process, zero if there was none.
type Known struct {
	signalbox.Token
	LastUsed time.Time
}

var tokenName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._:@/-]*$`)

// CreateToken creates a token. Only this call returns its secret.
//
// Errors: CodeValidation; CodeNotFound for an unknown user; CodeConflict if there
// is no admin yet and the token is not an admin's, if there are MaxTokens
// already, or if the service has a valid token.
func (k *Keeper) CreateToken(ctx context.Context, n NewToken) (Known, string, error) {
	t, err := n.row(k.now())
	if err != nil {
		return Known{}, "", err
	}
	var secret string
	err = k.alter(ctx, func(v *view) error {
		if secret, err = k.addToken(ctx, v, &t); err != nil {
			return err
		}
		return k.forgetEnded(ctx, v, t.CreatedAt)
	})
	return Known{Token: t}, secret, err
}

// row makes the row of a token, and validates it as far as possible without the store.
func (n *NewToken) row(now time.Time) (t signalbox.Token, err error) {
	t = signalbox.Token{
		Name: n.Name, Kind: signalbox.PrincipalService, Principal: n.Name, Scopes: n.Scopes, CreatedAt: now, CreatedBy: n.By,
	}
	switch {
	case len(n.Name) > 64 || !tokenName.MatchString(n.Name):
		return t, signalbox.Invalid("name", "name must be 1 to 64 letters, digits and ._:@/- , the first a letter or digit")
	case n.User != "" && n.Agent != "":
		return t, signalbox.Invalid("agent", "a token stands for a user or for an agent: give one of them")
	case n.User != "" && !signalbox.ValidName(n.User):
		return t, signalbox.Errorf(signalbox.CodeNotFound, "there is no user with that name")
	case n.Agent != "" && !signalbox.ValidName(n.Agent):
		return t, signalbox.Invalid("agent", "agent must be the name of an agent")
	case n.Expires < 0 || n.Expires > maxLife:
		return t, signalbox.Invalid("expires_in_seconds", "expires_in_seconds must be 0, for never, to %d", int64(maxLife/time.Second))
	}
	switch {
	case n.User != "":
		t.Kind, t.Principal = signalbox.PrincipalUser, n.User
	case n.Agent != "":
		t.Kind, t.Principal = signalbox.PrincipalAgent, n.Agent
	case n.Name == staticName:
		return t, signalbox.Invalid("name", "static is the name of the token in the configuration: choose another")
	}
	if n.Expires > 0 {
		t.ExpiresAt = now.Add(n.Expires).Truncate(time.Millisecond) // the precision of the store
	}
	if t.Agents, err = limits(n.Agents); err != nil {
		return t, err
	}
	return t, checkScopes(&t)
}

// addToken checks a row against the existing ones, creates its secret and stores it.
func (k *Keeper) addToken(ctx context.Context, v *view, t *signalbox.Token) (secret string, err error) {
	if t.Kind == signalbox.PrincipalUser {
		if err := ofKnownUser(v, t); err != nil {
			return "", err
		}
	}
	if old := v.service(t.Principal, k.now()); t.Kind == signalbox.PrincipalService && old != nil {
		return "", signalbox.Errorf(signalbox.CodeConflict,
			"service %s has a token already, %s, and two services with one name would own each other's tasks and idempotency keys: choose another name, or revoke that token first (signalbox tokens revoke %s)",
			t.Principal, old.ID, old.ID)
	}
	if len(v.tokens) >= MaxTokens {
		return "", signalbox.Errorf(signalbox.CodeConflict, "there are %d tokens, which is the maximum: revoke some", len(v.tokens))
	}
	admin := slices.Contains(t.Scopes, signalbox.ScopeAdmin)
	if t.Kind != signalbox.PrincipalAgent && !admin && !k.Static() && !v.admin {
		return "", errFirst
	}
	t.ID, secret, t.Hash, err = k.newSecret(t.Kind)
	if err != nil {
		return "", err
	}
	return secret, k.store.PutToken(ctx, *t)
}

// errFirst refuses credentials that have no effect yet: an open director gives everyone
// every right.
var errFirst = signalbox.Errorf(signalbox.CodeConflict,
	"this director is open: everyone on its host has every right, so this would have no effect. Make an admin first, which closes it: signalbox tokens create admin --scope admin, or signalbox users set NAME --role admin --password-stdin")

// ofKnownUser checks that a token has no more rights than its user's role.
func ofKnownUser(v *view, t *signalbox.Token) error {
	u, ok := v.users[t.Principal]
	if !ok {
		return signalbox.Errorf(signalbox.CodeNotFound, "there is no user %s: create the user first", t.Principal)
	}
	allowed := u.Role.Scopes()
	if len(t.Scopes) == 0 {
		t.Scopes = inOrder(allowed)
	}
	for _, s := range t.Scopes {
		if !slices.Contains(allowed, s) {
			return signalbox.Invalid("scopes", "user %s has the role %s, which does not include %s but %s", u.ID, u.Role, s, words(allowed))
		}
	}
	if len(t.Agents) > 0 && slices.Contains(t.Scopes, signalbox.ScopeAdmin) {
		return signalbox.Invalid("agents", "an admin cannot be limited to agents: give scopes without admin")
	}
	t.CreatedAt = later(t.CreatedAt, u.CreatedAt)
	return nil
}

// forgetEnded removes rows of tokens that ended long ago. Expired tokens with scope admin
// stay: they keep the director closed.
func (k *Keeper) forgetEnded(ctx context.Context, v *view, now time.Time) error {
	var gone []string
	for _, c := range v.tokens {
		ended := c.row.RevokedAt
		if ended.IsZero() && !slices.Contains(c.row.Scopes, signalbox.ScopeAdmin) {
			ended = c.row.ExpiresAt
		}
		if !ended.IsZero() && now.Sub(ended) > keepEnded {
			gone = append(gone, c.row.ID)
		}
	}
	return k.deleteTokens(ctx, gone)
}

// Tokens returns the tokens, without logins, newest first.
func (k *Keeper) Tokens() []Known {
	var list []Known
	for _, c := range k.current().tokens {
		if !c.row.Login {
			list = append(list, Known{Token: c.row, LastUsed: k.lastUsed(c.row.ID)})
		}
	}
	slices.SortFunc(list, func(a, b Known) int {
		if c := b.CreatedAt.Compare(a.CreatedAt); c != 0 {
			return c
		}
		return strings.Compare(a.ID, b.ID)
	})
	return list
}

func (k *Keeper) lastUsed(id string) time.Time {
	at, ok := k.used.Load(id)
	if !ok {
		return time.Time{}
	}
	return time.UnixMilli(at.(*atomic.Int64).Load()).UTC()
}

// Token returns the row of a token or login.
func (k *Keeper) Token(id string) (signalbox.Token, bool) {
	if c := k.current().tokens[id]; c != nil {
		return c.row, true
	}
	return signalbox.Token{}, false
}

// RevokeToken revokes a token at once. Revoking twice is no error.
//
// Errors: CodeNotFound; CodeConflict for the last admin credential if there is no
// static token.
func (k *Keeper) RevokeToken(ctx context.Context, id string) (signalbox.Token, error) {
	var row signalbox.Token
	err := k.alter(ctx, func(v *view) error {
		c := v.tokens[id]
		if c == nil || c.row.Login {
			return signalbox.Errorf(signalbox.CodeNotFound, "there is no token with that id: signalbox tokens lists them")
		}
		row = c.row
		if !row.RevokedAt.IsZero() {
			return nil
		}
		if c.admin() && !k.Static() && !v.keepsAdmin(k.now(), func(t *signalbox.Token, _ string) bool { return t != nil && t.ID == id }) {
			return errLast
		}
		row.RevokedAt = k.now()
		return k.store.PutToken(ctx, row)
	})
	return row, err
}

// errLast keeps a closed director from locking everyone out, and from opening itself.
var errLast = signalbox.Errorf(signalbox.CodeConflict,
	"this is the last admin credential: nobody could manage the director without it. Make another one first, or start the director with a static token (--token-file)")

// EnsureAgentToken creates a token for an agent that this process starts, and removes the
// one that it created before, whose holder is gone.
func (k *Keeper) EnsureAgentToken(ctx context.Context, agent string) (secret string, err error) {
	n := NewToken{Name: "up:agent", Agent: agent, By: signalbox.TokenByUp}
	t, err := n.row(k.now())
	if err != nil {
		return "", err
	}
	t.Name = "up:" + agent
	err = k.alter(ctx, func(v *view) error {
		var old []string
		for _, c := range v.tokens {
			if c.row.Kind == signalbox.PrincipalAgent && c.row.Principal == agent && c.row.Name == t.Name && c.row.CreatedBy == t.CreatedBy {
				old = append(old, c.row.ID)
			}
		}
		if err := k.deleteTokens(ctx, old); err != nil {
			return err
		}
		secret, err = k.addToken(ctx, v, &t)
		return err
	})
	return secret, err
}
