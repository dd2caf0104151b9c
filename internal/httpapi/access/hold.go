package access

import (
	"context"
	"net/http"
	"sync"
	"time"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/internal/engine"
)

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

// WhileAllowed returns a request whose context ends when the caller loses the
// rights with which it came.
func (g *Gate) WhileAllowed(r *http.Request, c Caller) (*http.Request, func()) {
	ctx, cancel := context.WithCancel(r.Context())
	g.UntilExpiry(ctx, c.Who, cancel)
	leave := g.Hold(c.Who, cancel)
	return r.WithContext(ctx), func() {
		leave()
		cancel()
	}
}

// Hold calls end when a caller loses the rights with which it came, until
// leave is called.
func (g *Gate) Hold(who signalbox.Principal, end func()) (leave func()) {
	h := &hold{who: who, end: end}
	g.held.mu.Lock()
	g.held.add(h)
	begin := !g.held.looking
	g.held.looking = true
	g.held.mu.Unlock()
	if begin {
		time.AfterFunc(g.id.Every(), g.look)
	}
	if !g.inForce(who) { // it was taken away since it was looked at
		end()
	}
	return func() {
		g.held.mu.Lock()
		g.held.remove(h)
		g.held.mu.Unlock()
	}
}

// inForce reports whether what a caller showed still counts; of a run, also
// whether it still runs.
func (g *Gate) inForce(who signalbox.Principal) bool {
	if !g.id.InForce(who) {
		return false
	}
	if who.Run == "" {
		return true
	}
	t, err := g.engine.Read().Task(g.life, who.Run)
	return err != nil || t.State.InFlight() && runTokenID(&t) == who.TokenID
}

// endCallsOf ends what a run began, once its execution is over.
func (g *Gate) endCallsOf(a *engine.Applied) {
	g.held.mu.Lock()
	defer g.held.mu.Unlock()
	for h := range g.held.runs[a.Task.ID] {
		if !a.Task.State.InFlight() || runTokenID(&a.Task) != h.who.TokenID {
			h.end()
		}
	}
}

// UntilExpiry calls end when the token or login of a caller expires, unless
// the context has ended by then.
func (g *Gate) UntilExpiry(ctx context.Context, who signalbox.Principal, end func()) {
	t, ok := g.id.Token(who.TokenID)
	if !ok || t.ExpiresAt.IsZero() {
		return
	}
	over := time.AfterFunc(t.ExpiresAt.Sub(g.engine.Now()), end)
	context.AfterFunc(ctx, func() { over.Stop() })
}

// look has the identities read anew where they are old, and comes again while
// something is held.
func (g *Gate) look() {
	g.id.Refresh()
	g.held.mu.Lock()
	g.held.looking = len(g.held.all) > 0
	again := g.held.looking
	g.held.mu.Unlock()
	if again {
		time.AfterFunc(g.id.Every(), g.look)
	}
}

// letGo ends what callers began who may no longer do it.
func (g *Gate) letGo() {
	g.held.mu.Lock()
	defer g.held.mu.Unlock()
	for h := range g.held.all {
		if !g.id.InForce(h.who) {
			h.end()
		}
	}
}
