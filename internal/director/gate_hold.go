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
var lasting = map[string]bool{"events": true, "live": true, "output": true, "task": true, "chat": true, "bypass": true, "claim": true,
	"callTool": true, "toolTask": true, "mcp": true, "mcpStream": true}

// held are the answers under way that last. As long as there are some, the
// identities are looked at again and again, also when nobody asks anything:
// another director may have taken rights away.
type held struct {
	mu      sync.Mutex
	all     map[*hold]struct{}
	looking bool
}

type hold struct {
	who signalbox.Principal
	end func()
}

// whileAllowed returns a request whose context ends when the caller loses the
// rights with which it came.
func (d *Director) whileAllowed(r *http.Request, route api.Route, c caller) (*http.Request, func()) {
	if !lasting[route.Name] {
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
	d.held.all[h] = struct{}{}
	begin := !d.held.looking
	d.held.looking = true
	d.held.mu.Unlock()
	if begin {
		time.AfterFunc(d.identity.Every(), d.look)
	}
	if !d.identity.InForce(who) { // it was taken away since it was looked at
		end()
	}
	return func() {
		d.held.mu.Lock()
		delete(d.held.all, h)
		d.held.mu.Unlock()
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
