package identity

import (
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base32"
	"encoding/base64"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/internal/handshake"
)

// The forms of a secret: "sbxa_ID_SECRET" for an agent, "sbxt_ID_SECRET" for all others.
// ID is the token's id without its prefix. It selects the row; the rest is the proof.
const (
	agentPrefix = "sbxa_"
	otherPrefix = "sbxt_"
	idPrefix    = "tok-"
	secretBytes = 32
	idBytes     = 10
)

var letters = base32.NewEncoding("0123456789abcdefghjkmnpqrstvwxyz").WithPadding(base32.NoPadding)

// newSecret returns a new id and secret for a token, with the secret's hash.
func (k *Keeper) newSecret(kind signalbox.PrincipalKind) (id, secret string, hash []byte, err error) {
	var b [idBytes + secretBytes]byte
	if _, err := io.ReadFull(k.opts.Random, b[:]); err != nil {
		return "", "", nil, fmt.Errorf("read random bytes for a token: %w", err)
	}
	short := letters.EncodeToString(b[:idBytes])
	prefix := otherPrefix
	if kind == signalbox.PrincipalAgent {
		prefix = agentPrefix
	}
	secret = prefix + short + "_" + base64.RawURLEncoding.EncodeToString(b[idBytes:])
	return idPrefix + short, secret, hashOf(secret), nil
}

func hashOf(secret string) []byte {
	sum := sha256.Sum256([]byte(secret))
	return sum[:]
}

// idOf returns the id in a secret, "" if the secret has another form.
func idOf(secret string) string {
	rest, ok := strings.CutPrefix(secret, agentPrefix)
	if !ok {
		if rest, ok = strings.CutPrefix(secret, otherPrefix); !ok {
			return ""
		}
	}
	short, _, ok := strings.Cut(rest, "_")
	if !ok {
		return ""
	}
	return idPrefix + short
}

var errWrong = signalbox.Errorf(signalbox.CodeUnauthorized, "the token is not the right one")

// guessable is the length in characters below which a static token might be guessed with
// many attempts. Generated tokens have 256 bits.
const guessable = 32

// Guessable reports whether the static token is so short that guesses must be
// slowed down.
func (k *Keeper) Guessable() bool { return len(k.opts.Static) < guessable }

// PublicToken is the minimum length in characters of a token chosen by a person on an
// address that others can reach.
const PublicToken = 16

// ShortStatic reports whether the static token is shorter than PublicToken.
func (k *Keeper) ShortStatic() bool { return len(k.opts.Static) < PublicToken }

// FromStatic returns the principal of the static token if secret is that token.
func (k *Keeper) FromStatic(secret string) (signalbox.Principal, bool) {
	got := sha256.Sum256([]byte(secret))
	if subtle.ConstantTimeCompare(got[:], k.static[:]) != 1 || k.opts.Static == "" {
		return signalbox.Principal{}, false
	}
	return signalbox.Principal{Kind: signalbox.PrincipalService, ID: staticName, TokenID: staticName, Scopes: signalbox.Scopes()}, true
}

// IsStatic reports whether a principal is that of the static token.
func (k *Keeper) IsStatic(who signalbox.Principal) bool { return who.TokenID == staticName }

// staticName is the token ID of the static token.
const staticName = "static"

// FromToken returns the principal of a stored token. Logins are refused.
func (k *Keeper) FromToken(secret string) (signalbox.Principal, error) {
	return k.prove(idOf(secret), secret, false)
}

// FromLogin returns the principal of a login, which needs both halves of its secret. Tokens
// are refused, so that an attacker cannot make a browser act for another user by planting a
// token in its cookie.
func (k *Keeper) FromLogin(cookie, key string) (signalbox.Principal, error) {
	return k.prove(idOf(cookie), bothHalves(cookie, key), true)
}

// NamedBy returns the key of the principal that a cookie claims, without proof; "" if the
// cookie names no login.
func (k *Keeper) NamedBy(cookie string) string {
	if c := k.current().tokens[idOf(cookie)]; c != nil && c.row.Login {
		return c.who.Key()
	}
	return ""
}

func (k *Keeper) prove(id, secret string, login bool) (signalbox.Principal, error) {
	hash := hashOf(secret)
	c, err := k.credential(id)
	if err != nil {
		return signalbox.Principal{}, err
	}
	if c == nil || subtle.ConstantTimeCompare(hash, c.row.Hash) != 1 || c.row.Login != login || k.foreign(c) {
		return signalbox.Principal{}, errWrong
	}
	now := k.now()
	switch {
	case c.reason != "":
		return signalbox.Principal{}, signalbox.Errorf(signalbox.CodeUnauthorized, "the token is no longer valid: %s", c.reason)
	case c.expired(now):
		return signalbox.Principal{}, signalbox.Errorf(signalbox.CodeUnauthorized, "the token expired at %s", c.row.ExpiresAt.Format("2006-01-02 15:04:05 MST"))
	}
	k.note(c.row.ID, now.UnixMilli())
	return c.who, nil
}

// ConnectionKey returns the key with which the director proves on a new connection that it
// knows the token of a selector, before the client sends the token. For an unknown selector
// it returns a key that no client has, so that the answer takes the same time. guessable
// says that wrong proofs must slow down right ones, too. Whether the token is valid, and
// what it may do, is decided when the client sends it.
func (k *Keeper) ConnectionKey(selector string) (key handshake.Key, guessable bool, err error) {
	if k.opts.Static != "" && selector == k.selector {
		return handshake.KeyOfHash(k.static[:]), k.Guessable(), nil
	}
	c, err := k.credential(idOf(selector + "_"))
	if err != nil {
		return key, false, err
	}
	if c == nil || c.row.Login { // only browsers use logins
		return k.nobodys, false, nil
	}
	return handshake.KeyOfHash(c.row.Hash), false, nil
}

// note records when a token was last used, for display. It is not stored, so that a
// request does not cost a write.
func (k *Keeper) note(id string, ms int64) {
	at, ok := k.used.Load(id)
	if !ok {
		at, _ = k.used.LoadOrStore(id, new(atomic.Int64))
	}
	at.(*atomic.Int64).Store(ms)
}

// InForce reports whether a principal that was authenticated before is still valid, with
// the same rights. It never reads the store, so that listeners of OnChange may call it.
func (k *Keeper) InForce(who signalbox.Principal) bool {
	v := k.seen.Load()
	if who.Run != "" { // the run may have ended: that is not known here
		now, err := v.run(who.ID, who.Run, who.TokenID, k.now())
		return err == nil && sameRights(now, who)
	}
	if who.TokenID == "" {
		return k.opts.Static == "" && !v.admin
	}
	if who.TokenID == staticName {
		return k.Static()
	}
	c := v.tokens[who.TokenID]
	return c != nil && c.reason == "" && !c.expired(k.now()) && !k.foreign(c) && sameRights(c.who, who)
}

// neverOfRuns are the scopes that no run gets, even if its agent's token has them: a prompt
// must not create anything that outlives the run, or act as the agent itself.
var neverOfRuns = []signalbox.Scope{signalbox.ScopeAdmin, signalbox.ScopeAgent, signalbox.ScopeSchedule, signalbox.ScopeTerminal}

// FromRun returns the principal of an agent's execution, whose token with this id was
// checked already. A run may do what all of its agent's valid tokens allow; if the agent
// has no tokens at all, what an agent may do by default.
//
// Errors: CodeUnauthorized if the agent had tokens, and none is valid any more.
func (k *Keeper) FromRun(agent, run, id string) (signalbox.Principal, error) {
	return k.current().run(agent, run, id, k.now())
}

func (v *view) run(agent, run, id string, now time.Time) (signalbox.Principal, error) {
	who := signalbox.Principal{Kind: signalbox.PrincipalAgent, ID: agent, TokenID: id, Run: run, Scopes: slices.Clone(agentScopes)}
	inForce := 0
	for _, c := range v.agents[agent] {
		if c.reason != "" || c.expired(now) {
			continue
		}
		if inForce++; inForce == 1 {
			who.Scopes = slices.Clone(c.who.Scopes)
		}
		who.Scopes = slices.DeleteFunc(who.Scopes, func(s signalbox.Scope) bool { return !c.who.Has(s) })
		who.Agents = both(who.Agents, c.who.Agents)
	}
	if inForce == 0 && len(v.agents[agent]) > 0 {
		return signalbox.Principal{}, signalbox.Errorf(signalbox.CodeUnauthorized, "no token of agent %s is in force any more, so its runs have no rights", agent)
	}
	who.Scopes = inOrder(slices.DeleteFunc(who.Scopes, func(s signalbox.Scope) bool { return slices.Contains(neverOfRuns, s) }))
	return who, nil
}

// limits validates a list of agents.
func limits(agents []string) ([]string, error) {
	if len(agents) > maxLimits {
		return nil, signalbox.Invalid("agents", "agents may name at most %d agents", maxLimits)
	}
	for _, name := range agents {
		if !signalbox.ValidName(name) {
			return nil, signalbox.Invalid("agents", "agents must be names of agents")
		}
	}
	sorted := slices.Clone(agents)
	slices.Sort(sorted)
	return slices.Compact(sorted), nil
}

// agentScopes are the default scopes of an agent's token.
var agentScopes = []signalbox.Scope{signalbox.ScopeSubmit, signalbox.ScopeRead, signalbox.ScopeTool, signalbox.ScopeAgent}

func checkScopes(t *signalbox.Token) error {
	for _, s := range t.Scopes {
		if !slices.Contains(signalbox.Scopes(), s) {
			return signalbox.Invalid("scopes", "scopes are %s", words(signalbox.Scopes()))
		}
	}
	t.Scopes = inOrder(t.Scopes)
	has := func(s signalbox.Scope) bool { return slices.Contains(t.Scopes, s) }
	switch {
	case t.Kind == signalbox.PrincipalAgent && len(t.Scopes) == 0:
		t.Scopes = inOrder(agentScopes)
	case t.Kind == signalbox.PrincipalAgent && has(signalbox.ScopeAdmin):
		return signalbox.Invalid("scopes", "the token of an agent cannot have the scope admin: everybody who prompts the agent would be admin")
	case t.Kind == signalbox.PrincipalService && len(t.Scopes) == 0:
		return signalbox.Invalid("scopes", "say which scopes the token has: %s", words(signalbox.Scopes()))
	case t.Kind == signalbox.PrincipalService && has(signalbox.ScopeAgent) && !has(signalbox.ScopeAdmin):
		return signalbox.Invalid("scopes", "scope agent is for the token of an agent: name the agent")
	}
	if len(t.Agents) > 0 && has(signalbox.ScopeAdmin) {
		return signalbox.Invalid("agents", "an admin cannot be limited to agents, because it could make itself an unlimited token: leave out agents, or the scope admin")
	}
	return nil
}

// inOrder returns the scopes in the order of signalbox.Scopes, each once.
func inOrder(scopes []signalbox.Scope) []signalbox.Scope {
	return slices.DeleteFunc(signalbox.Scopes(), func(s signalbox.Scope) bool { return !slices.Contains(scopes, s) })
}

func words(scopes []signalbox.Scope) string {
	list := make([]string, len(scopes))
	for i, s := range scopes {
		list[i] = string(s)
	}
	return strings.Join(list, ", ")
}
