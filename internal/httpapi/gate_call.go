package httpapi

import (
	"context"
	"errors"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/api"
	"github.com/signalbox-ai/signalbox/internal/httpapi/httpio"
)

// Headers of a call that an agent makes.
const ()

// callOf returns the execution that makes the call, as its token proves or its
// caller names it; "" where it names none. What the headers say of an agent is believed from
// that agent's own token alone.
func callOf(r *http.Request) (executionID string, err error) {
	who := callerOf(r).who
	isAgent := who.Kind == signalbox.PrincipalAgent
	if says := r.Header.Get(httpio.SourceAgentHeader); says != "" && (!isAgent || who.ID != says) {
		return "", httpio.Refuse(signalbox.CodeForbidden, "leave "+httpio.SourceAgentHeader+" out, or show the token of that agent",
			"%s says %s, but the token shown is that of %s", httpio.SourceAgentHeader, httpio.Clip(says), shownBy(who))
	}
	id := r.Header.Get(httpio.ExecutionHeader)
	switch {
	case who.Run != "" && id != "" && id != who.Run:
		return "", httpio.Refuse(signalbox.CodeForbidden, "leave "+httpio.ExecutionHeader+" out, for the token says which execution it is",
			"the token shown is that of execution %s, which cannot call as %s", who.Run, httpio.Clip(id))
	case who.Run != "":
		return who.Run, nil
	case id == "":
		return "", nil
	case !isAgent:
		return "", httpio.Refuse(signalbox.CodeForbidden, "leave "+httpio.ExecutionHeader+" out, or show the token of the agent that runs it",
			"%s is believed from the token of an agent alone, and the token shown is that of %s", httpio.ExecutionHeader, shownBy(who))
	case !signalbox.ValidID(id):
		return "", signalbox.Invalid(httpio.ExecutionHeader, "%q is not the id of an execution", httpio.Clip(id))
	}
	return id, nil
}

func shownBy(who signalbox.Principal) string {
	if who.Kind == "" {
		return "nobody"
	}
	return who.String()
}

// Ten wrong tokens may come at once from one address, then one in six
// seconds. Whoever has the right one is not held up by them.
const (
	badBurst    = 10
	badRefill   = 6 * time.Second
	maxBadAddrs = 10_000
)

// badTokens counts what is wrong by address block.
type badTokens struct {
	mu   sync.Mutex
	seen map[netip.Prefix]*bucket
}

func newBadTokens() *badTokens { return &badTokens{seen: map[netip.Prefix]*bucket{}} }

// bucket holds when the address would be free of blame.
type bucket struct{ until time.Time }

// wait returns how long the address has to wait before a wrong token of its
// is answered as such again.
func (b *badTokens) wait(key netip.Prefix, now time.Time) time.Duration {
	b.mu.Lock()
	defer b.mu.Unlock()
	got := b.seen[key]
	if got == nil {
		return 0
	}
	return got.until.Sub(now) - (badBurst-1)*badRefill
}

// note counts a wrong token. The table is bounded: when it is full, the
// addresses that are free of blame go, or else all do.
func (b *badTokens) note(key netip.Prefix, now time.Time) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.seen) >= maxBadAddrs {
		for k, old := range b.seen {
			if old.until.Before(now) {
				delete(b.seen, k)
			}
		}
		if len(b.seen) >= maxBadAddrs {
			clear(b.seen)
		}
	}
	got := b.seen[key]
	if got == nil {
		got = &bucket{}
		b.seen[key] = got
	}
	if got.until.Before(now) {
		got.until = now
	}
	got.until = got.until.Add(badRefill)
}

// How a route is narrowed for a caller that is limited to some agents.
type narrowing int

const (
	narrowClosed  narrowing = iota // not for such callers: deny by default
	narrowFree                     // it shows nothing of agents or tasks
	narrowTask                     // {id} is a task, which the caller must see
	narrowAgent                    // {name} is an agent, which the caller may use
	narrowHandler                  // the handler leaves out, or refuses, what is not the caller's
)

// narrow refuses what lies beyond a caller's limits, and what is not its own
// where it has the right to that alone. What one may not see is answered as if it
// were not there.
func (d *Server) narrow(r *http.Request, route api.Route, how narrowing, c caller) error {
	if c.who.Limited() {
		if err := d.narrowToAgents(r, how, c); err != nil {
			return err
		}
	}
	if len(route.Own) > 0 && !c.who.Has(signalbox.Scope(route.Scope)) {
		return d.ownsTask(r, route, c.who)
	}
	return nil
}

// ownsTask refuses the task of somebody else.
func (d *Server) ownsTask(r *http.Request, route api.Route, who signalbox.Principal) error {
	id := r.PathValue("id")
	if !signalbox.ValidID(id) {
		return nil // the handler says so
	}
	t, err := d.engine.Read().Task(r.Context(), id)
	if err != nil || who.Key() != "" && t.Owner == who.Key() {
		return err
	}
	return httpio.Refuse(signalbox.CodeForbidden, "show a token that has it, or that of who asked for the task",
		"this needs the scope %s where somebody else asked for the task, and %s has %s", route.Scope, who.String(), scopeWords(who.Scopes))
}

func (d *Server) narrowToAgents(r *http.Request, how narrowing, c caller) error {
	switch how {
	case narrowClosed:
		return httpio.Refuse(signalbox.CodeForbidden, "show a token without limits", "this is not for a caller that is limited to some agents (%s)", strings.Join(c.who.Agents, ", "))
	case narrowAgent:
		if name := r.PathValue("name"); !c.who.MayUse(name) {
			return c.who.NoAgent(httpio.Clip(name))
		}
	case narrowTask:
		return d.seesTask(r.Context(), r.PathValue("id"), c.who)
	case narrowFree, narrowHandler:
	}
	return nil
}

// seesTask returns CodeNotFound, in the store's own words, for a task that the
// principal does not see.
func (d *Server) seesTask(ctx context.Context, id string, who signalbox.Principal) error {
	if !signalbox.ValidID(id) {
		return nil // the handler says so
	}
	t, err := d.engine.Read().Task(ctx, id)
	if err == nil && !who.SeesTask(&t) {
		err = signalbox.Errorf(signalbox.CodeNotFound, "there is no task %q: it never existed or has been pruned", id)
	}
	return err
}

// discreet takes the names of other agents out of an error for a caller that
// is not to know of them.
func discreet(err error, r *http.Request, c caller) error {
	var e *signalbox.Error
	if c.who.Limited() && errors.As(err, &e) && e.Code == signalbox.CodeNotFound && e.Field == "agent" && r.PathValue("name") != "" {
		return c.who.NoAgent(httpio.Clip(r.PathValue("name")))
	}
	return err
}

// visible leaves out of a list of tasks what the caller does not see. A page
// may become shorter by it, even empty, and still have a next.
func visible(tasks []signalbox.Task, c caller) []signalbox.Task {
	if !c.who.Limited() {
		return tasks
	}
	return slices.DeleteFunc(slices.Clone(tasks), func(t signalbox.Task) bool { return !c.who.SeesTask(&t) })
}

// visibleIDs is visible for ids.
func (d *Server) visibleIDs(ctx context.Context, ids []string, c caller) ([]string, error) {
	if !c.who.Limited() {
		return ids, nil
	}
	var seen []string
	for _, id := range ids {
		err := d.seesTask(ctx, id, c.who)
		if err == nil {
			seen = append(seen, id)
		} else if signalbox.CodeOf(err) != signalbox.CodeNotFound {
			return nil, err
		}
	}
	return seen, nil
}
