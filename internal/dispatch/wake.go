package dispatch

import (
	"context"
	"slices"
	"time"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/internal/engine"
)

// How a waiting task finds a free slot without a tick:
//
//   - A task that becomes ready wakes one agent that serves its queue and has
//     a free slot that no other task was announced to. If there is none, every
//     agent that serves the queue is full or about to look.
//   - An agent that is woken, for whatever reason, claims until it is full or
//     nothing is left for it.
//   - A wake-up that was for another queue than the claim took from, or for an
//     agent that turned out unable, is passed on.

// applied hears of every durable change. It runs on the goroutine that made
// the change: it only leaves signs.
func (d *Dispatcher) applied(a engine.Applied) {
	t := a.Task
	switch a.Kind {
	case signalbox.EventAgentAdded, signalbox.EventAgentRemoved:
		poke(d.refresh)
		return
	case signalbox.EventResumed:
		d.wakeAll()
		return
	case signalbox.EventRelease:
		d.released(t)
	case signalbox.EventCancel:
		if t.State == signalbox.Cancelling {
			d.tellCancelOf(t)
		}
	}
	switch {
	case t.State == signalbox.Pending && t.Ready:
		d.kick(t.Queue)
	case t.State == signalbox.Pending:
		poke(d.care) // it waits for its time: the timer may be set too late
	}
	if t.SessionID != "" && !t.State.InFlight() && a.Kind != signalbox.EventSubmit {
		poke(d.recheck) // the next turn of the session may be ready now, in whatever queue
	}
}

// kick wakes an agent for a task that waits in queue.
func (d *Dispatcher) kick(queue string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.kickFrom(0, queue)
}

// kickFrom begins with the agent at first in order.
func (d *Dispatcher) kickFrom(first int, queue string) {
	if name, ok := signalbox.QueueAgent(queue); ok {
		if l := d.lanes[name]; l != nil {
			l.kick(queue)
		}
		return
	}
	kind, pool := signalbox.QueueKind(queue)
	for i := range d.order {
		l := d.order[(first+i)%len(d.order)]
		if (!pool || l.row.Kind == kind) && l.kick(queue) {
			return
		}
	}
}

// kick wakes the agent if it has a free slot that it was not woken for yet.
func (l *lane) kick(queue string) bool {
	if l.free() <= len(l.signals) {
		return false
	}
	l.signals = append(l.signals, queue)
	poke(l.wake)
	return true
}

func (d *Dispatcher) wakeAll() {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, l := range d.order {
		poke(l.wake)
	}
}

// kickWaiting wakes an agent for every queue in which something waits: the
// backstop. It begins with another agent each time, so that one which cannot
// take what it is woken for does not stand before the others for ever.
func (d *Dispatcher) kickWaiting(ctx context.Context) error {
	counts, err := d.engine.Read().Counts(ctx)
	if err != nil {
		return err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	for queue := range counts.Queues {
		d.kickFrom(d.first, queue)
	}
	d.first++
	return nil
}

// claimRetry is the pause after a claim that the store could not make.
const claimRetry = 200 * time.Millisecond

// laneLoop claims for one agent whenever it is woken.
func (d *Dispatcher) laneLoop(ctx context.Context, l *lane) {
	select {
	case <-ctx.Done():
		return
	case <-d.adopted:
	}
	for {
		select {
		case <-ctx.Done():
			return
		case <-l.wake:
		}
		for {
			more, err := d.claimOne(ctx, l)
			if ctx.Err() != nil {
				return
			}
			if err != nil {
				d.log.Error("claim failed, trying again", "agent", l.name, "error", err)
				if !sleep(ctx, claimRetry) {
					return
				}
			} else if !more {
				break
			}
		}
	}
}

// claimOne gives the agent one task if it has a free slot and one waits.
func (d *Dispatcher) claimOne(ctx context.Context, l *lane) (more bool, err error) {
	d.mu.Lock()
	signals := l.signals
	l.signals = nil
	able := !d.draining && l.free() > 0
	row, above := l.row, max(l.status.HighestFence, d.fences[l.name])
	switch {
	case able:
		d.busy++
	case !d.draining:
		d.passOn(signals)
	}
	d.mu.Unlock()
	if !able {
		return false, nil
	}
	defer d.unbusy()
	claimed, found, err := d.engine.Claim(ctx, row, above)
	if err != nil {
		d.mu.Lock()
		l.signals = append(signals, l.signals...)
		d.mu.Unlock()
		return false, err
	}
	if !found {
		return false, nil
	}
	d.begin(l, claimed, (*run).dispatch)
	if i := slices.Index(signals, claimed.Task.Queue); i >= 0 {
		signals = slices.Delete(signals, i, i+1)
	}
	if len(signals) > 0 {
		d.mu.Lock()
		d.passOn(signals)
		d.mu.Unlock()
	}
	return true, nil
}

// passOn wakes others for what an agent was woken for and did not take.
func (d *Dispatcher) passOn(queues []string) {
	for _, q := range queues {
		d.kickFrom(0, q)
	}
}

// begin starts a run on its own goroutine.
func (d *Dispatcher) begin(l *lane, c engine.Claimed, first func(*run, context.Context)) {
	ctx, stop := context.WithCancel(d.ctx)
	r := &run{
		d: d, lane: l, tail: newTail(), stop: stop, again: make(chan struct{}, 1),
		taskID: c.Task.ID, fence: c.Task.Fence, slot: c.Task.Slot,
		claimed: c, agentTask: c.Task.TaskID, heardAt: d.opts.Monotonic(),
	}
	d.mu.Lock()
	l.runs[c.Task.ID] = r
	l.epoch++
	d.busy++
	d.mu.Unlock()
	d.group.Go(func() {
		defer d.unbusy()
		defer stop()
		r.followEarlier(ctx)
		first(r, ctx)
		d.leave(r)
	})
}

// followEarlier begins the log behind that of an attempt that was lost.
func (r *run) followEarlier(ctx context.Context) {
	if r.row().Attempts == 0 {
		return
	}
	earlier, err := r.d.engine.Read().Result(ctx, r.taskID)
	if err == nil { // else the log of this attempt stands alone
		r.tail.follow(earlier)
	}
}

// leave takes a run off its lane and lets the lane look for more.
func (d *Dispatcher) leave(r *run) {
	r.tail.end()
	d.mu.Lock()
	l := r.lane
	if l.runs[r.taskID] == r {
		delete(l.runs, r.taskID)
		l.epoch++
	}
	if r.withheld {
		r.withheld = false
		l.withheld = append(l.withheld, withheld{
			Slot: signalbox.Slot{Agent: l.name, Slot: r.slot, TaskID: r.taskID, Fence: r.fence, Withheld: true}, id: r.agentTask,
		})
		poke(l.probing)
	}
	if l.removed {
		poke(d.refresh)
	}
	d.mu.Unlock()
	poke(l.wake)
}
