package push

import (
	"context"

	"github.com/signalbox-ai/signalbox/internal/execution"
)

// The bypass: isolated executions beside the slots of an agent, in slot rows
// of their own. What they do and what becomes of them says nothing about the
// agent's slots, and the other way round.

func (l *lane) isolatedInUse() int { return l.isolated + l.withheldSlots(true) }

// freeIsolated is how many isolated executions it could be offered now.
func (l *lane) freeIsolated() int {
	if !l.presence.Up() || l.removed || l.bypassHeld || l.offers.lostData() || !l.ours() {
		return 0
	}
	return l.health.Room(max(0, l.status.IsolatedSlots-l.isolatedInUse()))
}

// kickBypass says that something may wait in the agent's bypass queue.
func (l *lane) kickBypass() {
	l.bypass = true
	if l.freeIsolated() > 0 {
		l.wake.Send()
	}
}

// claimIsolated gives the agent one bypass task if one may wait for it and it
// has room for another isolated execution.
func (d *Dispatcher) claimIsolated(ctx context.Context, l *lane) (more bool, err error) {
	d.mu.Lock()
	able := l.bypass && !d.draining && l.freeIsolated() > 0
	t := l.term
	if able {
		l.bypass = false
		l.health.Try()
		d.work.Begin()
		t.group.Add(1)
	}
	row, slots, freed := l.row, l.status.IsolatedSlots, d.freed
	above := max(l.status.HighestFence, d.fences[l.name])
	d.mu.Unlock()
	if !able {
		return false, nil
	}
	defer t.group.Done()
	defer d.work.Done()
	offered := false
	defer func() { d.untriedUnless(offered, l) }()
	if !d.holds(l.name) {
		return false, nil // Lost is about to say so
	}
	claimed, found, err := d.engine.ClaimBypass(ctx, row, slots, above)
	if more = err == nil && (found || d.wentWithout(freed)); more || err != nil {
		d.mu.Lock()
		l.bypass = true // there may be another one, or the same one still
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
	l.bypassHeld = true
	l.bypassPause = min(max(firstDelay, 2*l.bypassPause), maxDelay)
	pause := l.bypassPause
	d.mu.Unlock()
	d.spawn(func() {
		execution.Sleep(d.ctx, pause)
		d.turn("bypass", l.name, 0)
		d.mu.Lock()
		l.bypassHeld = false
		l.kickBypass()
		d.mu.Unlock()
	})
}
