package push

import (
	"context"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/internal/execution"
)

// Where several directors are over one store, each agent has one that
// dispatches to it. The others have a lane for it as well, and ask it for its
// status, so that they can say how it is; but they offer it nothing, follow
// nothing at it, and judge nothing.

// term is the time in which this director dispatches to an agent.
type term struct {
	ctx  context.Context // of all that is done for it
	stop context.CancelFunc
	// group is all that is done for it, claims included. It grows only under
	// Dispatcher.mu, while the lane has this term.
	group sync.WaitGroup
	// ready says that what was in flight at its beginning has been taken up;
	// guarded by Dispatcher.mu.
	ready bool
}

// begin begins a term. Dispatcher.mu is held.
func (l *lane) begin(ctx context.Context) {
	t := &term{}
	t.ctx, t.stop = context.WithCancel(ctx)
	l.term = t
}

// ours reports whether this director dispatches to the agent, and has taken up
// what was in flight there.
func (l *lane) ours() bool { return l.term != nil && l.term.ready }

// in runs f as a part of a term of the lane, unless that is over. Dispatcher.mu
// is held.
func (d *Dispatcher) in(l *lane, t *term, f func()) bool {
	if d.stopped || t == nil || l.term != t {
		return false
	}
	t.group.Add(1)
	d.group.Go(func() {
		defer t.group.Done()
		f()
	})
	return true
}

// alone reports whether no other director is over the store.
func (d *Dispatcher) alone() bool { return d.opts.Holds == nil }

// holds reports whether this director dispatches to an agent at this moment,
// by the clock that its lease is measured by.
func (d *Dispatcher) holds(agent string) bool { return d.alone() || d.opts.Holds(agent) }

// Names lists the agents of which each must be some director's: those that pull,
// too.
func (d *Dispatcher) Names() []string {
	d.mu.Lock()
	defer d.mu.Unlock()
	names := slices.AppendSeq(make([]string, 0, len(d.order)+len(d.pulls)), maps.Keys(d.pulls))
	for _, l := range d.order {
		if !l.removed {
			names = append(names, l.name)
		}
	}
	return names
}

// Gained takes over agents: it goes on with what is in flight there, and then
// offers them tasks.
func (d *Dispatcher) Gained(agents []string) {
	d.mu.Lock()
	taken := map[string]*term{}
	for _, name := range agents {
		d.mine[name] = true
		if l := d.lanes[name]; l != nil && l.term == nil && d.ctx != nil && !d.stopped {
			l.begin(d.ctx)
			taken[name] = l.term
		}
	}
	d.mu.Unlock()
	d.takeOver(taken)
}

// takeOver takes up what is in flight at agents whose terms begin.
func (d *Dispatcher) takeOver(taken map[string]*term) {
	if len(taken) == 0 {
		return
	}
	d.spawn(func() {
		who := strings.Join(slices.Sorted(maps.Keys(taken)), " ")
		d.turn("take over", who, 0)
		for d.ctx.Err() == nil {
			err := d.adopt(d.ctx, taken)
			if err == nil {
				break
			}
			d.log.Error("tasks in flight not taken up, trying again", "error", err)
			execution.Sleep(d.ctx, execution.StoreRetry)
			d.turn("take over", who, 0)
		}
		d.ready(taken)
	})
}

// ready lets agents be offered tasks.
func (d *Dispatcher) ready(taken map[string]*term) {
	var lanes []*lane
	d.mu.Lock()
	for _, name := range slices.Sorted(maps.Keys(taken)) {
		t, l := taken[name], d.lanes[name]
		if l == nil || l.term != t {
			continue
		}
		t.ready = true
		l.stale = true
		l.isolatedOffers.look()
		l.conversations.want()
		if l.offers.lostData() {
			l.hold(reasonDataLoss)
		}
		d.mark(l)
		l.probing.Send()
		l.wake.Send()
		lanes = append(lanes, l)
	}
	d.mu.Unlock()
	for _, l := range lanes {
		d.askSessions(l)
	}
}

// Lost gives up agents that another director takes over, and returns when
// nothing is done for them here any more. What runs there is left as it is.
func (d *Dispatcher) Lost(agents []string) {
	var over []*term
	d.mu.Lock()
	for _, name := range agents {
		delete(d.mine, name)
		l := d.lanes[name]
		if l == nil || l.term == nil {
			continue
		}
		over = append(over, l.term)
		l.term.stop()
		l.term = nil
		l.withheld = nil
		l.offers.givenUp()
		signals := l.signals
		l.signals = nil
		d.mark(l)
		d.passOn(signals)
	}
	d.mu.Unlock()
	for _, t := range over {
		t.group.Wait()
	}
	d.turn("lost", strings.Join(agents, " "), 0)
}

// Wants reports whether the row of the task that an entry of another director
// is about is needed here.
func (d *Dispatcher) Wants(e *signalbox.Entry) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	switch {
	case d.runs[e.QueueID] != nil:
		return true
	case e.State == signalbox.Pending:
		return d.wantsOf(e.Queue)
	}
	// The end of a turn may have made the next one of its session ready.
	return e.State.Terminal() && len(d.open) > 0
}

// wantsOf reports whether some agent here could take a task of that queue now.
func (d *Dispatcher) wantsOf(queue string) bool {
	if name, ok := signalbox.QueueBypass(queue); ok {
		l := d.lanes[name]
		return l != nil && l.freeIsolated() > 0
	}
	if name, ok := signalbox.QueueAgent(queue); ok {
		l := d.lanes[name]
		return l != nil && l.open
	}
	if kind, ok := signalbox.QueueKind(queue); ok {
		return slices.ContainsFunc(d.open, func(l *lane) bool { return l.row.Kind == kind })
	}
	return queue == signalbox.QueueWork && len(d.open) > 0
}

// Behind has all look for what they were not told of.
func (d *Dispatcher) Behind() {
	d.wakeAll()
	d.refresh.Ask()
	d.maintenance.Early()
	d.spawn(func() { d.compareRuns(d.ctx) })
}

// terms are the terms of all lanes that have one.
func (d *Dispatcher) terms() map[string]*term {
	d.mu.Lock()
	defer d.mu.Unlock()
	all := map[string]*term{}
	for name, l := range d.lanes {
		if l.term != nil {
			all[name] = l.term
		}
	}
	return all
}
