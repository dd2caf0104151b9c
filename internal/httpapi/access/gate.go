package access

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/api"
	"github.com/signalbox-ai/signalbox/internal/engine"
	"github.com/signalbox-ai/signalbox/internal/httpapi/httpio"
	"github.com/signalbox-ai/signalbox/internal/identity"
)

// Gate decides who may use which route, and ends what lasts when its caller
// loses the rights with which it came.
type Gate struct {
	id      *identity.Keeper
	engine  *engine.Engine // which knows the executions, whose runs have tokens of their own
	life    context.Context
	guesses *guesses
	open    openRequests
}

// NewGate makes a gate. Nothing is read on behalf of a caller once life ends.
func NewGate(life context.Context, id *identity.Keeper, e *engine.Engine) *Gate {
	g := &Gate{id: id, engine: e, life: life, guesses: newGuesses(), open: newOpenRequests()}
	e.Observe(g.endRequestsOf)
	id.OnChange(g.endRevoked)
	return g
}

// Admit returns the caller of a request, and an error unless it may use the
// route.
func (g *Gate) Admit(r *http.Request, route api.Route) (Caller, error) {
	c := callerFrom(r)
	if route.Scope == api.ScopePublic || route.Scope == api.ScopeTicket {
		return c, nil
	}
	if err := g.identify(r, &c); err != nil {
		return c, err
	}
	return c, allow(r, route, c.Who)
}

// identify finds out who the caller is. A token goes before a cookie; one that
// is shown must be right, also where none is asked for.
func (g *Gate) identify(r *http.Request, c *Caller) error {
	addr := c.Who.Addr
	token, given, err := bearer(r)
	switch {
	case err != nil:
		return err
	case given:
		if c.Who, err = g.fromToken(r.Context(), token, c.Addr); err != nil {
			return err
		}
		c.Trusted = true
	default:
		// What was a login once is no more than no token at all: the page in
		// which it stands shall come to the login page.
		if c.Who, err = g.id.FromLogin(Cookie(r, LoginCookie), r.Header.Get(LoginHeader)); err == nil {
			c.Trusted = true
		} else if signalbox.CodeOf(err) == signalbox.CodeUnavailable {
			return err
		} else if !g.id.Open() {
			return signalbox.Errorf(signalbox.CodeUnauthorized, "this director asks for a token")
		} else {
			c.Who = signalbox.Principal{Scopes: signalbox.Scopes()}
		}
	}
	c.Who.Addr = addr
	return nil
}

// fromToken proves a token. One that is right is never held up by the wrong
// ones of others at the same address, unless it is short enough to be
// guessed: then a guess is not even looked at while there were too many.
func (g *Gate) fromToken(ctx context.Context, token, addr string) (signalbox.Principal, error) {
	who, err := g.principalOf(ctx, token)
	if err == nil || errors.Is(err, engine.ErrRunOver) { // which is no guess
		return who, err
	}
	key := identity.AddrBlock(addr)
	wait := g.guesses.wait(key, time.Now())
	if wait <= 0 || !g.id.Guessable() {
		if who, ok := g.id.FromStatic(token); ok {
			return who, nil
		}
	}
	if signalbox.CodeOf(err) != signalbox.CodeUnauthorized { // whether it is right cannot be told
		return who, err
	}
	if wait > 0 {
		return who, tooManyWrong(addr, wait)
	}
	g.guesses.note(key, time.Now())
	return who, err
}

func tooManyWrong(addr string, wait time.Duration) error {
	return &httpio.Refusal{
		Err:        signalbox.Errorf(signalbox.CodeRateLimited, "too many wrong tokens came from %s", addr),
		RetryAfter: int(wait/time.Second) + 1,
	}
}

// principalOf returns the principal of a token that is stored, or of one that a run
// has for as long as it lasts.
func (g *Gate) principalOf(ctx context.Context, token string) (signalbox.Principal, error) {
	if !strings.HasPrefix(token, engine.RunTokenPrefix) {
		return g.id.FromToken(token)
	}
	t, err := g.engine.RunOf(ctx, token)
	if err != nil {
		return signalbox.Principal{}, err
	}
	return g.id.FromRun(t.Agent, t.ID, runTokenID(&t))
}

// runTokenID names the token of a run, which has no row.
func runTokenID(t *signalbox.Task) string {
	return "run-" + t.ID + "." + strconv.FormatInt(t.Fence, 10)
}

// allow decides by the route's scope.
func allow(r *http.Request, route api.Route, who signalbox.Principal) error {
	switch route.Scope {
	case api.ScopeAny:
		return nil
	case api.ScopeAgent:
		return AllowAgent(r.PathValue("name"), who)
	}
	if who.Has(signalbox.Scope(route.Scope)) || slices.ContainsFunc(route.Own, func(s api.Scope) bool { return who.Has(signalbox.Scope(s)) }) {
		return nil // which task it may be about is decided by narrow
	}
	return httpio.Refuse(signalbox.CodeForbidden, "show a token that has it; signalbox tokens create makes one, signalbox whoami says what this one may do",
		"this needs the scope %s, and %s has %s", route.Scope, who.String(), ScopeWords(who.Scopes))
}

// AllowAgent lets an agent speak for itself, and admins for any. Without a
// name in the path the handler looks at the one in the body.
func AllowAgent(name string, who signalbox.Principal) error {
	switch {
	case who.Has(signalbox.ScopeAdmin):
		return nil
	case who.Kind != signalbox.PrincipalAgent || !who.Has(signalbox.ScopeAgent):
		return httpio.Refuse(signalbox.CodeForbidden, "signalbox tokens create NAME --agent AGENT makes a token for an agent",
			"this is for agents, which show their own token, and %s is none", who.String())
	case name != "" && name != who.ID:
		return httpio.Refuse(signalbox.CodeForbidden, "show the token of that agent",
			"the token shown is that of agent %s, which cannot speak for agent %s", who.ID, httpio.Clip(name))
	}
	return nil
}
