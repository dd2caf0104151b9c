package access

import (
	"context"
	"errors"
	"net/http"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/api"
	"github.com/signalbox-ai/signalbox/internal/engine"
	"github.com/signalbox-ai/signalbox/internal/httpapi/httpio"
	"github.com/signalbox-ai/signalbox/internal/identity"
	"github.com/signalbox-ai/signalbox/internal/ratelimit"
	"github.com/signalbox-ai/signalbox/internal/seal"
)

// Gate decides who may use which route, and ends long requests when their caller loses
// its rights.
type Gate struct {
	id      *identity.Keeper
	engine  *engine.Engine // checks the tokens of runs
	life    context.Context
	guesses *ratelimit.Limiter[netip.Prefix] // wrong tokens, by address block
	open    openRequests
}

// NewGate returns a gate that works until life ends.
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

// identify authenticates the caller. A token takes precedence over a cookie, and must be
// valid even where none is required.
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
		// An expired login counts as no credentials: its page is redirected to the
		// login page.
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

// fromToken authenticates a token. A valid one is never delayed by wrong ones from the
// same address, unless it is short enough to be guessed: then no token is tried while
// there were too many wrong ones.
func (g *Gate) fromToken(ctx context.Context, token, addr string) (signalbox.Principal, error) {
	who, err := g.principalOf(ctx, token)
	if err == nil || errors.Is(err, errRunOver) { // valid tokens are no guesses
		return who, err
	}
	key := identity.AddrBlock(addr)
	wait := g.guesses.Wait(key, 1, time.Now())
	if wait <= 0 || !g.id.Guessable() {
		if who, ok := g.id.FromStatic(token); ok {
			return who, nil
		}
	}
	if signalbox.CodeOf(err) != signalbox.CodeUnauthorized { // it could not be checked
		return who, err
	}
	if wait > 0 {
		return who, tooManyWrong(addr, wait)
	}
	g.guesses.Add(key, 1, time.Now())
	return who, err
}

func tooManyWrong(addr string, wait time.Duration) error {
	return &httpio.Refusal{
		Err:        signalbox.Errorf(signalbox.CodeRateLimited, "too many wrong tokens came from %s", addr),
		RetryAfter: int(wait/time.Second) + 1,
	}
}

// principalOf returns the principal of a stored token or of the token of a run.
func (g *Gate) principalOf(ctx context.Context, token string) (signalbox.Principal, error) {
	if !strings.HasPrefix(token, seal.RunTokenPrefix) {
		return g.id.FromToken(token)
	}
	t, err := g.runOf(ctx, token)
	if err != nil {
		return signalbox.Principal{}, err
	}
	return g.id.FromRun(t.Agent, t.ID, runTokenID(&t))
}

// errRunOver says that the token is authentic, but its run has ended.
var errRunOver = signalbox.Errorf(signalbox.CodeUnauthorized, "the token is that of a run which has ended")

// runOf returns the task of the run that a token identifies, while it runs.
func (g *Gate) runOf(ctx context.Context, token string) (signalbox.Task, error) {
	id, fence, ok := g.engine.Options().Sealer.RunOf(token)
	if !ok {
		return signalbox.Task{}, signalbox.Errorf(signalbox.CodeUnauthorized, "the token is not the right one")
	}
	t, err := g.engine.Read().Task(ctx, id)
	if signalbox.CodeOf(err) == signalbox.CodeNotFound || err == nil && (!t.State.InFlight() || t.Fence != fence) {
		return signalbox.Task{}, errRunOver
	}
	return t, err
}

// runTokenID is the ID of a run's token. Such tokens are not stored.
func runTokenID(t *signalbox.Task) string {
	return "run-" + t.ID + "." + strconv.FormatInt(t.Fence, 10)
}

// allow checks the scope of the route.
func allow(r *http.Request, route api.Route, who signalbox.Principal) error {
	switch route.Scope {
	case api.ScopeAny:
		return nil
	case api.ScopeAgent:
		return AllowAgent(r.PathValue("name"), who)
	}
	if who.Has(signalbox.Scope(route.Scope)) || slices.ContainsFunc(route.Own, func(s api.Scope) bool { return who.Has(signalbox.Scope(s)) }) {
		return nil // Narrow decides which tasks it may name
	}
	return httpio.Refuse(signalbox.CodeForbidden, "use a token that has it; signalbox tokens create makes one, signalbox whoami shows what this one may do",
		"this needs the scope %s, and %s has %s", route.Scope, who.String(), ScopeWords(who.Scopes))
}

// AllowAgent allows an agent to act for itself, and admins to act for any agent. If the
// path has no name, the handler calls it with the name in the body.
func AllowAgent(name string, who signalbox.Principal) error {
	switch {
	case who.Has(signalbox.ScopeAdmin):
		return nil
	case who.Kind != signalbox.PrincipalAgent || !who.Has(signalbox.ScopeAgent):
		return httpio.Refuse(signalbox.CodeForbidden, "signalbox tokens create NAME --agent AGENT makes a token for an agent",
			"this is for agents, which use their own token, and %s is not an agent", who.String())
	case name != "" && name != who.ID:
		return httpio.Refuse(signalbox.CodeForbidden, "use the token of that agent",
			"the token is that of agent %s, which cannot act for agent %s", who.ID, httpio.Clip(name))
	}
	return nil
}
