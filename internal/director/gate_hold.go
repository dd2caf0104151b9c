package director

import (
	"context"
	"net/http"
	"sync"
	"time"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/api"
)

// lasting names the routes whose answers may take long. They end when what
// their caller showed is no longer in force, not only when it comes again.
var lasting = map[string]bool{"events": true, "output": true, "task": true, "chat": true, "bypass": true}

// held are the answers under way that last.
type held struct {
	mu  sync.Mutex
	all map[*hold]struct{}
}

type hold struct {
	who signalbox.Principal
	end context.CancelFunc
}

// whileAllowed returns a request whose context ends when the caller loses the rights
// with which it came.
func (d *Director) whileAllowed(r *http.Request, route api.Route, c caller) (*http.Request, func()) {
	if !lasting[route.Name] {
		return r, func() {}
	}
	ctx, cancel := context.WithCancel(r.Context())
	if t, ok := d.identity.Token(c.who.TokenID); ok && !t.ExpiresAt.IsZero() {
		over := time.AfterFunc(t.ExpiresAt.Sub(d.engine.Now()), cancel)
		context.AfterFunc(ctx, func() { over.Stop() })
	}
	h := &hold{who: c.who, end: cancel}
	d.held.mu.Lock()
	d.held.all[h] = struct{}{}
	d.held.mu.Unlock()
	if !d.identity.InForce(c.who) { // it was taken away since it was looked at
		cancel()
	}
	return r.WithContext(ctx), func() {
		d.held.mu.Lock()
		delete(d.held.all, h)
		d.held.mu.Unlock()
		cancel()
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
