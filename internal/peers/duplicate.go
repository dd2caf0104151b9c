package peers

import (
	"context"
	"time"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/internal/store"
)

// Two processes of one name would supersede each other in turn. A new one takes over a name
// only if the other process has stopped: it was restarted elsewhere.

const (
	// duplicateWatch is how long a process with our name is watched: a live one sends at
	// least one beat in that time.
	duplicateWatch = 2*Every + time.Second
	duplicatePause = 250 * time.Millisecond
)

// refuseDuplicate returns an error if a live process has our name at another address. An
// entry with our own address is stale, since we are bound to it.
func (p *Peers) refuseDuplicate(ctx context.Context) error {
	first, found, err := p.duplicate(ctx)
	if err != nil || !found {
		return err
	}
	p.log.Warn("another process uses the name of this director: checking whether it is alive", "instance", p.me.ID, "url", first.URL, "for", duplicateWatch)
	for until := p.o.Monotonic().Add(duplicateWatch); p.o.Monotonic().Before(until); {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(duplicatePause):
		}
		now, found, err := p.duplicate(ctx)
		switch {
		case err != nil:
			return err
		case !found: // it left, or is about to
			return nil
		case now.Run != first.Run || !now.Expires.Equal(first.Expires):
			return signalbox.Errorf(signalbox.CodeConflict,
				"another live director has the name %s (at %s): give each its own name with --instance, or stop that one first", p.me.ID, now.URL)
		}
	}
	p.log.Warn("the other process of this name is not alive: this one takes over, and ends it if it comes back", "instance", p.me.ID, "url", first.URL)
	return nil
}

// duplicate returns a director with our name at another address that may be alive and is
// not draining.
func (p *Peers) duplicate(ctx context.Context) (d store.Director, found bool, err error) {
	rows, err := p.store.Directors(ctx)
	if err != nil {
		return d, false, err
	}
	for _, d := range rows {
		if d.ID == p.me.ID && d.Run != p.me.Run && d.URL != p.me.URL && !d.Draining && d.Alive(p.o.Now()) {
			return d, true, nil
		}
	}
	return d, false, nil
}
