package director

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

// whileAllowed returns a request whose context ends when the caller loses the
// rights with which it came.
func (d *Director) whileAllowed(r *http.Request, e endpoint, c caller) (*http.Request, func()) {
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
func (d *Director) holdFor(who signalbox.Principal, end func()) (leave func()) {
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
func (d *Director) inForce(who signalbox.Principal) bool {
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
func (d *Director) endCallsOf(a *engine.Applied) {
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
func (d *Director) untilExpiry(ctx context.Context, who signalbox.Principal, end func()) {
	t, ok := d.identity.Token(who.TokenID)
	if !ok || t.ExpiresAt.IsZero() {
		return
	}
	over := time.AfterFunc(t.ExpiresAt.Sub(d.engine.Now()), end)
	context.AfterFunc(ctx, func() { over.Stop() })
}

// look has the identities read anew where they are old, and comes again while
// something is held.
func (d *Director) look() {
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
func (d *Director) letGo() {
	d.held.mu.Lock()
	defer d.held.mu.Unlock()
	for h := range d.held.all {
		if !d.identity.InForce(h.who) {
			h.end()
		}
	}
}
