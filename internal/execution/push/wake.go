package push

import (
	"context"
	"maps"
	"slices"
	"time"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/internal/engine"
	"github.com/signalbox-ai/signalbox/internal/execution"
	"github.com/signalbox-ai/signalbox/internal/store"
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
func (d *Dispatcher) applied(a *engine.Applied) {
	t := a.Task
	switch a.Kind {
	case signalbox.EventAgentDown:
		d.downElsewhere(t.Agent, t.Message)
		return
	case signalbox.EventAgentUp:
		return
	case signalbox.EventAgentAdded, signalbox.EventAgentRemoved:
		d.reask(t.Agent)
		d.refresh.Ask()
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
	case signalbox.EventStop:
		d.tellCancelOf(t)
	}
	if a.From.InFlight() && !t.State.InFlight() {
		if a.Foreign && a.Kind != signalbox.EventRelease {
			d.endedElsewhere(t, a.Kind)
		}
		d.freedElsewhere(t, a.Foreign)
	}
	switch {
	case t.State == signalbox.Pending && (t.Ready || a.Partial):
		d.kick(t.Queue)
	case t.State == signalbox.Pending:
		d.maintenance.Early() // it waits for its time: the timer may be set too late
	}
	if a.NextTurn() {
		d.recheck.Ask()
	}
}

func (d *Dispatcher) wakeAll() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.resumed++
	d.undrain()
	for _, l := range d.order {
		l.isolatedOffers.look()
		l.wake.Send()
	}
}

// kickWaiting wakes an agent for every queue in which something waits: the
// backstop.
func (d *Dispatcher) kickWaiting(ctx context.Context) error {
	counts, err := d.engine.Read().Counts(ctx)
	if err == nil {
		d.kickQueues(counts)
	}
	return err
}

// kickQueues wakes an agent for every queue that was counted. It begins with another
// agent each time, so that one which cannot take what it is woken for does not
// stand before the others for ever.
func (d *Dispatcher) kickQueues(counts store.Counts) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.undrain() // another director may have resumed a queue
	for _, queue := range slices.Sorted(maps.Keys(counts.Queues)) {
		d.kickFrom(d.first, queue)
	}
	d.first++
}

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
		d.turn("lane", l.name, 0)
		for {
			more, err := d.claimOne(ctx, l)
			if !more && err == nil {
				more, err = d.claimIsolated(ctx, l)
			}
			if ctx.Err() != nil {
				return
			}
			if err != nil {
				d.log.Error("claim failed, trying again", "agent", l.name, "error", err)
				slept := execution.Sleep(ctx, execution.StoreRetry)
				d.turn("lane", l.name, 0)
				if !slept {
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
	t := l.term
	d.mark(l)
	row, above, freed, resumed := l.row, max(l.status.HighestFence, d.fences[l.name]), d.freed, d.resumed
	switch {
	case able:
		d.beginClaim(l)
	case !d.draining:
		d.passOn(signals)
	}
	d.mu.Unlock()
	if !able {
		return false, nil
	}
	offered := false
	defer func() { d.endClaim(l, t, offered) }()
	if !d.holds(l.name) {
		return false, nil // Lost is about to say so
	}
	claimed, found, err := d.engine.Claim(ctx, row, above)
	if err != nil {
		d.mu.Lock()
		defer d.mu.Unlock()
		if signalbox.FieldOf(err) == "highest_fence" { // no claim is made for it while it says that
			l.hold(err.Error())
			delete(d.fences, l.name) // what it says next counts
			d.mark(l)
			d.passOn(signals)
			return false, nil
		}
		l.signals = append(signals, l.signals...)
		d.mark(l)
		return false, err
	}
	ceiling := d.engine.Fleet() > 0
	if !found && d.wentDrained(ctx, l, signals, resumed) {
		return false, nil
	}
	if !found {
		return ceiling && d.wentWithout(freed), nil
	}
	if ceiling {
		d.recheck.Ask() // below the ceiling there may be room for more
	}
	offered = d.begin(l, t, claimed)
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

// beginClaim notes that a claim for the agent is under way. Dispatcher.mu is held.
func (d *Dispatcher) beginClaim(l *lane) {
	l.health.Try()
	d.mark(l)
	d.work.Begin()
	l.term.group.Add(1)
}

// endClaim notes that a claim is over, of a term that may be over too. offered says
// whether something was offered: else what was to decide about the agent's health
// did not.
func (d *Dispatcher) endClaim(l *lane, t *term, offered bool) {
	if !offered {
		d.mu.Lock()
		l.health.Untried()
		d.mark(l)
		d.mu.Unlock()
	}
	d.work.Done()
	t.group.Done()
}

// passOn wakes others for what an agent was woken for and did not take.
func (d *Dispatcher) passOn(queues []string) {
	for _, q := range queues {
		d.kickFrom(0, q)
	}
}

// begin starts the run of a task that was claimed in a term, and reports whether
// it did. Where the term is over by now, or the agent must be asked first, the
// claim is given back.
func (d *Dispatcher) begin(l *lane, t *term, c engine.Claimed) bool {
	why := "the agent went to another director before the task was sent"
	if !signalbox.Isolated(c.Task.Slot) && d.doubtful(l) {
		why = reasonDataLoss
	} else {
		r := d.newRun(l, t, c)
		r.traced()
		if d.start(r, (*run).dispatch) {
			return true
		}
		if d.ctx.Err() != nil {
			return false
		}
	}
	ctx, cancel := context.WithTimeout(d.ctx, giveBackFor)
	defer cancel()
	if _, err := d.engine.Unsent(ctx, c.Task, why); err != nil {
		d.log.Warn("a claim was not given back: the director that follows the agent does", "queue_id", c.Task.ID, "error", err)
	}
	return false
}

// giveBackFor bounds how long a claim is given back for which it is too late.
const giveBackFor = 5 * time.Second

// newRun makes the run of a task. ctx ends when the dispatcher stops, the agent
// goes to another director, or the execution is taken away.
func (d *Dispatcher) newRun(l *lane, t *term, c engine.Claimed) *run {
	r := &run{
		Run: execution.NewRun(c, d.opts.Monotonic()), d: d, lane: l, term: t, again: execution.NewSignal(), done: make(chan struct{}),
		taskID: c.Task.ID, fence: c.Task.Fence, slot: c.Task.Slot, isolated: signalbox.Isolated(c.Task.Slot), talk: c.Task.SessionID,
		request: c.Request, env: c.Env, agentTask: c.Task.TaskID, seenBefore: map[string]bool{},
	}
	r.ctx, r.stop = context.WithCancel(t.ctx)
	return r
}

// start puts a run on the books, on a goroutine of its own, unless its term is
// over.
func (d *Dispatcher) start(r *run, first func(*run, context.Context)) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	begun := d.in(r.lane, r.term, func() {
		defer close(r.done)
		defer d.work.Done()
		defer r.stop()
		r.turn("run")
		t := r.row()
		_ = execution.FollowEarlier(r.ctx, d.engine.Read(), &t, r.Tail) // else the log of this attempt stands alone
		first(r, r.ctx)
		d.leave(r)
	})
	if !begun {
		r.stop()
		return false
	}
	r.lane.put(r)
	d.runs[r.taskID] = r
	d.mark(r.lane)
	d.work.Begin()
	return true
}

// drop takes a run off the books, if it is still there. Dispatcher.mu is held.
func (d *Dispatcher) drop(r *run) {
	r.lane.take(r)
	if d.runs[r.taskID] == r {
		delete(d.runs, r.taskID)
	}
}

// claimBehind returns the context for the change that ends a run: the agent's next
// task is claimed behind it, in the same commit where the store can do that. Of an
// agent without fences it must first be noted here what the run was called, and of
// one that names its conversations itself, in which one it ended.
func (d *Dispatcher) claimBehind(ctx context.Context, r *run) context.Context {
	if d.opts.Turn != nil || r.isolated {
		return ctx
	}
	return store.Followed(ctx, func() {
		d.mu.Lock()
		defer d.mu.Unlock()
		if l := r.lane; l.runs[r.taskID] == r && l.row.Fencing && l.status.Sessions {
			r.lane.end(r, true)
			d.mark(r.lane)
			r.lane.wake.Send()
		}
	})
}

// notEnding takes back that the slot of a run may be claimed.
func (d *Dispatcher) notEnding(r *run) {
	d.mu.Lock()
	defer d.mu.Unlock()
	r.lane.end(r, false)
	d.mark(r.lane)
}

// leave takes a run off its lane and lets the lane look for more.
func (d *Dispatcher) leave(r *run) {
	r.Tail.End()
	d.mu.Lock()
	l := r.lane
	d.drop(r)
	l.past(r)
	l.health.Untried() // its offer decided nothing
	if r.withheld && l.term == r.term && !l.keeps(r.fence) {
		r.withheld = false
		l.withheld = append(l.withheld, withheld{
			Slot: signalbox.Slot{Agent: l.name, Slot: r.slot, TaskID: r.taskID, Fence: r.fence, Withheld: true}, id: r.agentTask,
		})
		l.probing.Send()
	}
	if l.removed {
		d.refresh.Ask()
	}
	if r.isolated {
		l.isolatedOffers.look()
	}
	d.mark(l)
	d.slotFreed()
	d.mu.Unlock()
	l.wake.Send()
}
