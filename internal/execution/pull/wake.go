package pull

import (
	"cmp"
	"container/list"
	"context"
	"maps"
	"slices"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/api"
	"github.com/signalbox-ai/signalbox/internal/engine"
	"github.com/signalbox-ai/signalbox/internal/execution"
)

// How a waiting task finds an agent that pulls:
//
//   - A task that becomes ready wakes one agent that serves its queue and is
//     parked, the one that has waited longest. If none is, it is counted, and who
//     looks at that moment looks again.
//   - What an agent was woken for and did not take is passed on.

// poll is a claim that waits.
type poll struct {
	lane *lane
	sign execution.Signal // look again
	over chan struct{}    // closed when another claim of the agent has come
	n    int64            // counts claims

	// Guarded by Lanes.mu.
	runs      []api.PullRun // as the agent said, without those that it reported the end of since
	woken     string        // the queue in which something was ready
	all, kind *list.Element // in Lanes.idle and Lanes.kinds, while it is parked and could take a task
	ended     bool          // over is closed
}

// enter makes a claim the one of its agent.
func (l *Lanes) enter(a *lane, runs []api.PullRun) (*poll, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.draining {
		return nil, signalbox.Errorf(signalbox.CodeUnavailable, "this director is stopping and gives out no tasks: ask another one, or this one when it is back")
	}
	l.supersede(a)
	l.polls++
	p := &poll{lane: a, n: l.polls, sign: execution.NewSignal(), over: make(chan struct{}), runs: slices.Clone(runs)}
	a.poll = p
	return p, nil
}

// supersede ends the claim of an agent; the caller holds mu.
func (l *Lanes) supersede(a *lane) {
	p := a.poll
	if p == nil || p.ended {
		return
	}
	p.ended = true
	close(p.over)
	l.unpark(p)
	a.poll = nil
}

// exit takes a claim off the books. What it was woken for is for others.
func (l *Lanes) exit(p *poll) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.unpark(p)
	if p.lane.poll == p {
		p.lane.poll = nil
	}
	woken := p.woken
	p.woken = ""
	l.kickHeld(woken)
}

func (l *Lanes) runsOf(p *poll) []api.PullRun {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(p.runs)
}

// park lets the claim wait. It returns false where something became ready since
// unmet was read: it may be for this one.
func (l *Lanes) park(p *poll, unmet int64) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !p.lane.open() || p.ended || l.draining {
		return true // it waits for what concerns it alone
	}
	if l.unmet != unmet {
		return false
	}
	if p.all == nil {
		p.all = l.idle.PushBack(p)
		p.kind = l.kindList(p.lane.row.Kind).PushBack(p)
	}
	return true
}

func (l *Lanes) kindList(kind string) *list.List {
	if l.kinds[kind] == nil {
		l.kinds[kind] = list.New()
	}
	return l.kinds[kind]
}

func (l *Lanes) unpark(p *poll) {
	if p.all == nil {
		return
	}
	l.idle.Remove(p.all)
	for kind, of := range l.kinds { // its kind may have been changed since
		if of.Remove(p.kind); of.Len() == 0 {
			delete(l.kinds, kind)
		}
	}
	p.all, p.kind = nil, nil
}

// kick wakes an agent for a task that waits in queue; "" is none.
func (l *Lanes) kick(queue string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.kickHeld(queue)
}

// kickHeld is kick with mu held.
func (l *Lanes) kickHeld(queue string) {
	if name, ok := signalbox.QueueBypass(queue); ok {
		if a := l.lanes[name]; a != nil {
			a.bypass = true
			l.poke(a)
		}
		return
	}
	if name, ok := signalbox.QueueAgent(queue); ok {
		if a := l.lanes[name]; a != nil && a.poll != nil {
			l.wake(a.poll, queue)
		}
		return
	}
	kind, pool := signalbox.QueueKind(queue)
	from := &l.idle
	switch {
	case pool && l.kinds[kind] != nil:
		from = l.kinds[kind]
	case pool:
		l.unmet++
		return
	case queue != signalbox.QueueWork:
		return // no agent serves it
	}
	first := from.Front()
	if first == nil {
		l.unmet++
		return
	}
	l.wake(first.Value.(*poll), queue)
}

// wake has a claim look for a task in queue.
func (l *Lanes) wake(p *poll, queue string) {
	l.unpark(p)
	p.woken = cmp.Or(p.woken, queue) // it looks in all of its queues anyway
	p.sign.Send()
}

// poke has the claim of an agent look again, where there is one.
func (l *Lanes) poke(a *lane) {
	if a.poll != nil {
		a.poll.sign.Send()
	}
}

// applied hears of every durable change. It runs on the goroutine that made
// the change: it only leaves signs.
func (l *Lanes) applied(c *engine.Applied) {
	t := c.Task
	switch c.Kind {
	case signalbox.EventAgentAdded, signalbox.EventAgentRemoved:
		l.forget(t.Agent) // until it has been read again
		l.refresh.Ask()
		return
	case signalbox.EventResumed:
		l.undrain()
		l.recheck.Ask()
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if a := l.lanes[t.Agent]; a != nil && t.ID != "" {
		l.take(a, c)
	}
	switch {
	case t.State == signalbox.Pending && (t.Ready || c.Partial):
		l.kickHeld(t.Queue)
	case len(l.lanes) == 0:
	case c.NextTurn():
		l.recheck.Ask()
	case c.From.InFlight() && !t.State.InFlight() && l.engine.Fleet() > 0:
		l.recheck.Ask() // below the ceiling there may be room for more
	}
}

// forget drops what is known of an agent that was removed, or is now another
// one: its next request reads it anew.
func (l *Lanes) forget(name string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if a := l.lanes[name]; a != nil {
		a.stale = true
		l.supersede(a)
	}
}

// take takes in a change of a task that an agent had or has in hand.
func (l *Lanes) take(a *lane, c *engine.Applied) {
	t := c.Task
	r := a.runs[t.ID]
	switch {
	case t.State.InFlight() && !c.Partial:
		if l.putRun(a, t); c.From == signalbox.Dispatching && t.State == signalbox.Working {
			l.well(a)
		}
	case t.State.InFlight() && (r == nil || r.Task.Fence != t.Fence):
		l.reload.Ask() // who it is about is not told
		return
	case t.State.InFlight():
		if earlier(t.State, r.Task.State) {
			return // than the row that was read since
		}
		r.Task.State, r.Task.CancelRequested = t.State, r.Task.CancelRequested || t.CancelRequested || t.State == signalbox.Cancelling
	case r != nil && t.Fence >= r.Task.Fence:
		l.dropRun(r)
	default:
		return
	}
	l.poke(a)
}

// earlier reports whether an execution passes through a state before another: it
// never goes back.
func earlier(s, than signalbox.State) bool {
	order := []signalbox.State{signalbox.Dispatching, signalbox.Working, signalbox.Cancelling}
	return slices.Index(order, s) < slices.Index(order, than)
}

// Wants reports whether the row of the task that a journal entry is about is
// needed here, where another director wrote it.
func (l *Lanes) Wants(e *signalbox.Entry) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.lanes[e.Agent] != nil
}

// Behind has everything looked at anew: changes of others were left out.
func (l *Lanes) Behind() {
	l.refresh.Ask()
	l.reload.Ask()
	l.undrain()
	l.recheck.Ask()
}

// undrain lets all drained agents look again.
func (l *Lanes) undrain() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.resumed++
	for _, a := range l.lanes {
		a.bypass = true
		if a.drained {
			a.drained = false
			l.poke(a)
		}
	}
}

// kickWaiting wakes an agent for every queue in which something waits, and has
// drained ones look again, for another director may have resumed a queue: the
// backstop. It costs nothing while nobody waits for a task.
func (l *Lanes) kickWaiting(ctx context.Context) error {
	l.mu.Lock()
	waits := false
	for _, a := range l.lanes {
		if a.drained {
			a.drained = false
			l.poke(a)
		}
		waits = waits || a.poll != nil
	}
	l.mu.Unlock()
	if !waits {
		return nil
	}
	counts, err := l.engine.Read().Counts(ctx)
	if err != nil {
		return err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, queue := range slices.Sorted(maps.Keys(counts.Queues)) {
		l.kickHeld(queue)
	}
	return nil
}
