package push

import (
	"context"
	"time"

	"github.com/signalbox-ai/signalbox/internal/execution"
)

// The bypass: isolated executions beside the slots of an agent, in slot rows
// of their own. What they do and what becomes of them says nothing about the
// agent's slots, and the other way round.

// isolatedOffers says whether an agent's bypass queue is looked at.
type isolatedOffers struct {
	state bypassState
	pause time.Duration // the last one; 0: it has taken an isolated task since
}

type bypassState int

const (
	bypassEmpty  bypassState = iota // nothing waits there, as far as is known
	bypassLook                      // something may wait
	bypassPaused                    // the agent said busy to an isolated offer a moment ago
)

// look has the queue looked at, after a pause if there is one.
func (o *isolatedOffers) look() {
	if o.state == bypassEmpty {
		o.state = bypassLook
	}
}

// hold begins a pause, which grows each time, and returns how long it is.
func (o *isolatedOffers) hold() time.Duration {
	o.state, o.pause = bypassPaused, min(max(firstDelay, 2*o.pause), maxDelay)
	return o.pause
}

func (l *lane) isolatedInUse() int { return l.isolated + l.withheldSlots(true) }

// freeIsolated is how many isolated executions it could be offered now.
func (l *lane) freeIsolated() int {
	if !l.presence.Up() || l.removed || l.isolatedOffers.state == bypassPaused || l.offers.lostData() || !l.ours() {
		return 0
	}
	return l.health.Room(max(0, l.status.IsolatedSlots-l.isolatedInUse()))
}

// kickBypass says that something may wait in the agent's bypass queue.
func (l *lane) kickBypass() {
	l.isolatedOffers.look()
	if l.freeIsolated() > 0 {
		l.wake.Send()
	}
}

// claimIsolated gives the agent one bypass task if one may wait for it and it
// has room for another isolated execution.
func (d *Dispatcher) claimIsolated(ctx context.Context, l *lane) (more bool, err error) {
	d.mu.Lock()
	able := l.isolatedOffers.state == bypassLook && !d.draining && l.freeIsolated() > 0
	t := l.term
	if able {
		l.isolatedOffers.state = bypassEmpty
		d.beginClaim(l)
	}
	row, slots, freed := l.row, l.status.IsolatedSlots, d.freed
	above := max(l.status.HighestFence, d.fences[l.name])
	d.mu.Unlock()
	if !able {
		return false, nil
	}
	offered := false
	defer func() { d.endClaim(l, t, offered) }()
	if !d.holds(l.name) {
		return false, nil // Lost is about to say so
	}
	claimed, found, err := d.engine.ClaimBypass(ctx, row, slots, above)
	if more = err == nil && (found || d.wentWithout(freed)); more || err != nil {
		d.mu.Lock()
		l.isolatedOffers.look() // there may be another one, or the same one still
		d.mu.Unlock()
	}
	if found {
		offered = d.begin(l, t, claimed)
	}
	return more, err
}

// holdIsolated offers no more isolated executions for a while to an agent that
// said busy to one. Its slots have nothing to do with that.
func (d *Dispatcher) holdIsolated(l *lane) {
	d.mu.Lock()
	pause := l.isolatedOffers.hold()
	d.mu.Unlock()
	d.spawn(func() {
		execution.Sleep(d.ctx, pause)
		d.turn("bypass", l.name, 0)
		d.mu.Lock()
		l.isolatedOffers.state = bypassEmpty
		l.kickBypass()
		d.mu.Unlock()
	})
}
