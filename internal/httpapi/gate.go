package httpapi

import (
	"context"
	"errors"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/api"
	"github.com/signalbox-ai/signalbox/internal/engine"
	"github.com/signalbox-ai/signalbox/internal/httpapi/httpio"
	"github.com/signalbox-ai/signalbox/internal/identity"
)

// caller is who sent a request.
type caller struct {
	trusted  bool // showed a token, or the cookie of a login
	loopback bool // asks from this host, with no proxy in between
	addr     string
	who      signalbox.Principal
	// from is the request that it came with, for another director that is asked
	// on its behalf; forwarded says that another one asks on somebody's.
	from      *http.Request
	forwarded bool
}

// String names the caller for the journal and for messages such as
// "cancelled by …".
func (c caller) String() string { return c.who.String() }

type callerKey struct{}

func withCaller(ctx context.Context, c caller) context.Context {
	return context.WithValue(ctx, callerKey{}, c)
}

func callerOf(r *http.Request) caller { return callerIn(r.Context()) }

func callerIn(ctx context.Context) caller {
	c, _ := ctx.Value(callerKey{}).(caller)
	return c
}

// gate decides who may use which route.
type gate struct {
	id     *identity.Keeper
	engine *engine.Engine // which knows the executions, whose runs have tokens of their own
	bad    *badTokens
}

func newGate(id *identity.Keeper, e *engine.Engine) gate {
	return gate{id: id, engine: e, bad: newBadTokens()}
}

// admit returns the caller of a request, and an error unless it may use the
// route.
func (g gate) admit(r *http.Request, route api.Route) (caller, error) {
	c := callerFrom(r)
	if route.Scope == api.ScopePublic || route.Scope == api.ScopeTicket {
		return c, nil
	}
	if err := g.identify(r, &c); err != nil {
		return c, err
	}
	return c, allow(r, route, c.who)
}

// identify finds out who the caller is. A token goes before a cookie; one that
// is shown must be right, also where none is asked for.
func (g gate) identify(r *http.Request, c *caller) error {
	addr := c.who.Addr
	token, given, err := bearer(r)
	switch {
	case err != nil:
		return err
	case given:
		if c.who, err = g.fromToken(r.Context(), token, c.addr); err != nil {
			return err
		}
		c.trusted = true
	default:
		// What was a login once is no more than no token at all: the page in
		// which it stands shall come to the login page.
		if c.who, err = g.id.FromLogin(cookieNamed(r, loginCookie), r.Header.Get(loginHeader)); err == nil {
			c.trusted = true
		} else if signalbox.CodeOf(err) == signalbox.CodeUnavailable {
			return err
		} else if !g.id.Open() {
			return signalbox.Errorf(signalbox.CodeUnauthorized, "this director asks for a token")
		} else {
			c.who = signalbox.Principal{Scopes: signalbox.Scopes()}
		}
	}
	c.who.Addr = addr
	return nil
}

// fromToken proves a token. One that is right is never held up by the wrong
// ones of others at the same address, unless it is short enough to be
// guessed: then a guess is not even looked at while there were too many.
func (g gate) fromToken(ctx context.Context, token, addr string) (signalbox.Principal, error) {
	who, err := g.principalOf(ctx, token)
	if err == nil || errors.Is(err, engine.ErrRunOver) { // which is no guess
		return who, err
	}
	key := identity.AddrBlock(addr)
	wait := g.bad.wait(key, time.Now())
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
	g.bad.note(key, time.Now())
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
func (g gate) principalOf(ctx context.Context, token string) (signalbox.Principal, error) {
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
		return allowAgent(r.PathValue("name"), who)
	}
	if who.Has(signalbox.Scope(route.Scope)) || slices.ContainsFunc(route.Own, func(s api.Scope) bool { return who.Has(signalbox.Scope(s)) }) {
		return nil // which task it may be about is decided by narrow
	}
	return httpio.Refuse(signalbox.CodeForbidden, "show a token that has it; signalbox tokens create makes one, signalbox whoami says what this one may do",
		"this needs the scope %s, and %s has %s", route.Scope, who.String(), scopeWords(who.Scopes))
}

// allowAgent lets an agent speak for itself, and admins for any. Without a
// name in the path the handler looks at the one in the body.
func allowAgent(name string, who signalbox.Principal) error {
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

func scopeWords(scopes []signalbox.Scope) string {
	if len(scopes) == 0 {
		return "none"
	}
	list := make([]string, len(scopes))
	for i, s := range scopes {
		list[i] = string(s)
	}
	return strings.Join(list, ", ")
}

// bearer returns the token of a request. Two are none: what is in front of
// the director might have looked at the other one.
func bearer(r *http.Request) (token string, given bool, err error) {
	values := r.Header.Values("Authorization")
	if len(values) > 1 {
		return "", false, signalbox.Errorf(signalbox.CodeUnauthorized, "Authorization is given %d times; send it once", len(values))
	}
	if len(values) == 0 {
		return "", false, nil
	}
	scheme, token, ok := strings.Cut(values[0], " ")
	token = strings.TrimSpace(token)
	return token, ok && strings.EqualFold(scheme, "Bearer") && token != "", nil
}

// cookieNamed returns the value of a cookie; "" also where there are several,
// of which another site may have set one.
func cookieNamed(r *http.Request, name string) string {
	found := r.CookiesNamed(name)
	if len(found) != 1 {
		return ""
	}
	return found[0].Value
}

// callerFrom reads the address of the connection. What a proxy claims is not
// believed; that there is one is, and then nobody counts as local.
func callerFrom(r *http.Request) caller {
	host, _, err := net.SplitHostPort(r.RemoteAddr)
	if err != nil {
		host = r.RemoteAddr
	}
	c := caller{addr: httpio.Clip(host)}
	ip, err := netip.ParseAddr(host)
	proxied := r.Header.Get("Forwarded") != "" || r.Header.Get("X-Forwarded-For") != "" || r.Header.Get("X-Real-Ip") != ""
	c.loopback = err == nil && ip.Unmap().IsLoopback() && !proxied
	c.from, c.forwarded = r, r.Header.Get(forwardedHeader) != ""
	c.who.Addr = c.addr
	if c.loopback {
		c.who.Addr = "local"
	}
	return c
}

// held are the answers under way that last. As long as there are some, the
// identities are looked at again and again, also when nobody asks anything:
// another director may have taken rights away.
type held struct {
	mu      sync.Mutex
	all     map[*hold]struct{}
	runs    map[string]map[*hold]struct{} // those of runs, by execution
	looking bool
}

func newHeld() held {
	return held{all: map[*hold]struct{}{}, runs: map[string]map[*hold]struct{}{}}
}

func (l *held) add(h *hold) {
	l.all[h] = struct{}{}
	if run := h.who.Run; run != "" {
		if l.runs[run] == nil {
			l.runs[run] = map[*hold]struct{}{}
		}
		l.runs[run][h] = struct{}{}
	}
}

func (l *held) remove(h *hold) {
	delete(l.all, h)
	if run := h.who.Run; run != "" {
		if delete(l.runs[run], h); len(l.runs[run]) == 0 {
			delete(l.runs, run)
		}
	}
}

type hold struct {
	who signalbox.Principal
	end func()
}

// whileAllowed returns a request whose context ends when the caller loses the
// rights with which it came.
func (d *Server) whileAllowed(r *http.Request, e endpoint, c caller) (*http.Request, func()) {
	if !e.lasting {
		return r, func() {}
	}
	ctx, cancel := context.WithCancel(r.Context())
	d.untilExpiry(ctx, c.who, cancel)
	leave := d.holdFor(c.who, cancel)
	return r.WithContext(ctx), func() {
		leave()
		cancel()
	}
}

// holdFor calls end when a caller loses the rights with which it came, until
// leave is called.
func (d *Server) holdFor(who signalbox.Principal, end func()) (leave func()) {
	h := &hold{who: who, end: end}
	d.held.mu.Lock()
	d.held.add(h)
	begin := !d.held.looking
	d.held.looking = true
	d.held.mu.Unlock()
	if begin {
		time.AfterFunc(d.identity.Every(), d.look)
	}
	if !d.inForce(who) { // it was taken away since it was looked at
		end()
	}
	return func() {
		d.held.mu.Lock()
		d.held.remove(h)
		d.held.mu.Unlock()
	}
}

// inForce reports whether what a caller showed still counts; of a run, also
// whether it still runs.
func (d *Server) inForce(who signalbox.Principal) bool {
	if !d.identity.InForce(who) {
		return false
	}
	if who.Run == "" {
		return true
	}
	t, err := d.engine.Read().Task(d.life, who.Run)
	return err != nil || t.State.InFlight() && runTokenID(&t) == who.TokenID
}

// endCallsOf ends what a run began, once its execution is over.
func (d *Server) endCallsOf(a *engine.Applied) {
	d.held.mu.Lock()
	defer d.held.mu.Unlock()
	for h := range d.held.runs[a.Task.ID] {
		if !a.Task.State.InFlight() || runTokenID(&a.Task) != h.who.TokenID {
			h.end()
		}
	}
}

// untilExpiry calls end when the token or login of a caller expires, unless
// the context has ended by then.
func (d *Server) untilExpiry(ctx context.Context, who signalbox.Principal, end func()) {
	t, ok := d.identity.Token(who.TokenID)
	if !ok || t.ExpiresAt.IsZero() {
		return
	}
	over := time.AfterFunc(t.ExpiresAt.Sub(d.engine.Now()), end)
	context.AfterFunc(ctx, func() { over.Stop() })
}

// look has the identities read anew where they are old, and comes again while
// something is held.
func (d *Server) look() {
	d.identity.Refresh()
	d.held.mu.Lock()
	d.held.looking = len(d.held.all) > 0
	again := d.held.looking
	d.held.mu.Unlock()
	if again {
		time.AfterFunc(d.identity.Every(), d.look)
	}
}

// letGo ends what callers began who may no longer do it.
func (d *Server) letGo() {
	d.held.mu.Lock()
	defer d.held.mu.Unlock()
	for h := range d.held.all {
		if !d.identity.InForce(h.who) {
			h.end()
		}
	}
}
