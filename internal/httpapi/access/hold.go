package access

import (
	"context"
	"net/http"
	"sync"
	"time"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/internal/engine"
)

// openRequests are the long requests in progress. While there are any, the identities are
// refreshed periodically, because another director may have revoked rights.
type openRequests struct {
	mu       sync.Mutex
	all      map[*openRequest]struct{}
	runs     map[string]map[*openRequest]struct{} // requests of runs, by execution
	checking bool
}

func newOpenRequests() openRequests {
	return openRequests{all: map[*openRequest]struct{}{}, runs: map[string]map[*openRequest]struct{}{}}
}

func (l *openRequests) add(h *openRequest) {
	l.all[h] = struct{}{}
	if run := h.who.Run; run != "" {
		if l.runs[run] == nil {
			l.runs[run] = map[*openRequest]struct{}{}
		}
		l.runs[run][h] = struct{}{}
	}
}

func (l *openRequests) remove(h *openRequest) {
	delete(l.all, h)
	if run := h.who.Run; run != "" {
		if delete(l.runs[run], h); len(l.runs[run]) == 0 {
			delete(l.runs, run)
		}
	}
}

type openRequest struct {
	who signalbox.Principal
	end func()
}

// WhileAllowed returns a request whose context ends when the caller loses its rights.
func (g *Gate) WhileAllowed(r *http.Request, c Caller) (*http.Request, func()) {
	ctx, cancel := context.WithCancel(r.Context())
	g.UntilExpiry(ctx, c.Who, cancel)
	leave := g.OnRevoked(c.Who, cancel)
	return r.WithContext(ctx), func() {
		leave()
		cancel()
	}
}

// OnRevoked calls end when a caller loses its rights, until leave is called.
func (g *Gate) OnRevoked(who signalbox.Principal, end func()) (leave func()) {
	h := &openRequest{who: who, end: end}
	g.open.mu.Lock()
	g.open.add(h)
	begin := !g.open.checking
	g.open.checking = true
	g.open.mu.Unlock()
	if begin {
		time.AfterFunc(g.id.Every(), g.recheck)
	}
	if !g.inForce(who) { // revoked since the check
		end()
	}
	return func() {
		g.open.mu.Lock()
		g.open.remove(h)
		g.open.mu.Unlock()
	}
}

// inForce reports whether a caller's credentials are still valid, and for a run, whether it
// still runs.
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

// endRequestsOf ends the requests of a run when its execution has ended.
func (g *Gate) endRequestsOf(a *engine.Applied) {
	g.open.mu.Lock()
	defer g.open.mu.Unlock()
	for h := range g.open.runs[a.Task.ID] {
		if !a.Task.State.InFlight() || runTokenID(&a.Task) != h.who.TokenID {
			h.end()
		}
	}
}

// UntilExpiry calls end when the token or login of a caller expires, unless ctx ends
// before.
func (g *Gate) UntilExpiry(ctx context.Context, who signalbox.Principal, end func()) {
	t, ok := g.id.Token(who.TokenID)
	if !ok || t.ExpiresAt.IsZero() {
		return
	}
	over := time.AfterFunc(t.ExpiresAt.Sub(g.engine.Now()), end)
	context.AfterFunc(ctx, func() { over.Stop() })
}

// recheck refreshes stale identities, and runs again while there are open requests.
func (g *Gate) recheck() {
	g.id.Refresh()
	g.open.mu.Lock()
	g.open.checking = len(g.open.all) > 0
	again := g.open.checking
	g.open.mu.Unlock()
	if again {
		time.AfterFunc(g.id.Every(), g.recheck)
	}
}

// endRevoked ends the open requests of callers that have lost their rights.
func (g *Gate) endRevoked() {
	g.open.mu.Lock()
	defer g.open.mu.Unlock()
	for h := range g.open.all {
		if !g.id.InForce(h.who) {
			h.end()
		}
	}
}
