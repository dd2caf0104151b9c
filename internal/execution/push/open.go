package push

import (
	"context"
	"slices"
	"strings"

	"github.com/signalbox-ai/signalbox"
)

// mark keeps Dispatcher.open true after something about a lane has changed:
// a task that becomes ready finds its agent there, and the cost of finding
// none does not grow with the number of agents. Those who show agents are told
// where one is to be shown otherwise. Dispatcher.mu is held.
func (d *Dispatcher) mark(l *lane) {
	if shown := l.shown(); shown != l.told {
		l.told = shown
		d.engine.AgentChanged(l.name)
	}
	open := l.free() > len(l.signals)
	if open == l.open {
		return
	}
	l.open = open
	at, found := slices.BinarySearchFunc(d.open, l.name, func(l *lane, name string) int { return strings.Compare(l.name, name) })
	switch {
	case open && !found:
		d.open = slices.Insert(d.open, at, l)
	case !open && found && d.open[at] == l:
		d.open = slices.Delete(d.open, at, at+1)
	}
}

// ahead returns what wakes an agent for a task that is about to wait in queue, nil
// where none could take it now.
func (d *Dispatcher) ahead(queue string) (wake func()) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if !d.wantsOf(queue) {
		return nil
	}
	return func() { d.kick(queue) }
}

// kick wakes an agent for a task that waits in queue.
func (d *Dispatcher) kick(queue string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.kickFrom(0, queue)
}

// kickFrom begins with the agent at first among those that have a free slot.
func (d *Dispatcher) kickFrom(first int, queue string) {
	if name, ok := signalbox.QueueBypass(queue); ok {
		if l := d.lanes[name]; l != nil {
			l.kickBypass()
		}
		return
	}
	if name, ok := signalbox.QueueAgent(queue); ok {
		if l := d.lanes[name]; l != nil && l.open {
			d.kickLane(l, queue)
		}
		return
	}
	kind, pool := signalbox.QueueKind(queue)
	if !pool && queue != signalbox.QueueWork {
		return // no agent serves it
	}
	for i := range d.open {
		l := d.open[(first+i)%len(d.open)]
		if !pool || l.row.Kind == kind {
			d.kickLane(l, queue)
			return
		}
	}
}

// kickLane wakes an agent that has a free slot for which it was not woken yet.
func (d *Dispatcher) kickLane(l *lane, queue string) {
	l.signals = append(l.signals, queue)
	d.mark(l)
	l.wake.Send()
}

// wentDrained notes that a claim found nothing because the agent is drained,
// and passes on what it was woken for. resumed is the count of resumed queues
// before that claim: where one was resumed since, the agent was woken again.
func (d *Dispatcher) wentDrained(ctx context.Context, l *lane, signals []string, resumed int64) bool {
	if !d.engine.Drained(ctx, l.name) {
		return false
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.resumed != resumed {
		l.signals = append(signals, l.signals...)
		d.mark(l)
		return true
	}
	l.drained = true
	signals = append(signals, l.signals...)
	l.signals = nil
	d.mark(l)
	d.passOn(signals)
	return true
}

// undrain lets all drained agents look again. Dispatcher.mu is held.
func (d *Dispatcher) undrain() {
	for _, l := range d.order {
		if l.drained {
			l.drained = false
			d.mark(l)
		}
	}
}

// slotFreed notes that a slot has become free. Where a claim found nothing
// because of a ceiling over all agents, whoever waits is looked for again.
func (d *Dispatcher) slotFreed() {
	d.freed++
	if d.starved {
		d.starved = false
		d.recheck.Ask()
	}
}

// freedElsewhere is slotFreed for a task that has no run here: another director
// freed its slot, or its agent is one that pulls.
func (d *Dispatcher) freedElsewhere(t signalbox.Task, foreign bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if foreign || d.pulls[t.Agent] {
		d.slotFreed()
	}
}

// wentWithout notes that a claim found nothing which a ceiling may have held
// back. freed is the count of freed slots before that claim: where one was
// freed since, it is worth to look again.
func (d *Dispatcher) wentWithout(freed int64) (again bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.freed != freed {
		return true
	}
	d.starved = true
	return false
}
