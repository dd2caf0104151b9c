package push

import (
	"context"
	"time"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/internal/engine"
	"github.com/signalbox-ai/signalbox/internal/execution"
	"github.com/signalbox-ai/signalbox/internal/store"
)

// applied observes durable changes. It runs on the goroutine that made the change, so it
// only sends signals.
func (d *Dispatcher) applied(a *engine.Applied) {
	t := a.Task
	switch a.Kind {
	case signalbox.EventAgentDown:
		d.foreignDown(t.Agent, t.Message)
		return
	case signalbox.EventAgentUp:
		return
	case signalbox.EventAgentAdded, signalbox.EventAgentRemoved:
		d.requestStatus(t.Agent)
		d.refresh.Request()
		return
	case signalbox.EventRelease:
		d.released(t)
	case signalbox.EventCancel:
		if t.State == signalbox.Cancelling {
			d.sendCancelFor(t)
		}
	case signalbox.EventStop:
		d.sendCancelFor(t)
	}
	if a.Foreign && a.From.InFlight() && !t.State.InFlight() && a.Kind != signalbox.EventRelease {
		d.foreignEnd(t, a.Kind)
	}
	if t.State == signalbox.Pending && !t.Ready && !a.Partial {
		d.Maintenance.RunNow() // it is due later, perhaps before the timer fires
	}
	d.Applied(a)
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
		case <-l.Wake:
		}
		d.Turn("lane", l.Name, 0)
		for {
			more, err := d.claim(ctx, l, false)
			if !more && err == nil {
				more, err = d.claim(ctx, l, true)
			}
			if ctx.Err() != nil {
				return
			}
			if err != nil {
				d.Log.Error("claim failed, trying again", "agent", l.Name, "error", err)
				slept := execution.Sleep(ctx, execution.StoreRetry)
				d.Turn("lane", l.Name, 0)
				if !slept {
					return
				}
			} else if !more {
				break
			}
		}
	}
}

// claim gives the agent one task, or one of its bypass queue, if it has room and a task
// waits.
func (d *Dispatcher) claim(ctx context.Context, l *lane, isolated bool) (more bool, err error) {
	d.Mu.Lock()
	t := l.term
	if t == nil {
		d.Mu.Unlock()
		return false, nil
	}
	t.group.Add(1)
	d.Mu.Unlock()
	defer t.group.Done()
	d.work.Begin()
	defer d.work.Done()
	c, found, more, err := d.Claim(ctx, l, isolated)
	if err != nil && !isolated && signalbox.FieldOf(err) == "highest_fence" {
		d.Mu.Lock()
		defer d.Mu.Unlock()
		l.hold(err.Error())
		d.Update(l)
		return false, nil
	}
	if found && !d.begin(l, t, c) {
		d.Mu.Lock()
		d.OfferUndecided(l)
		d.Mu.Unlock()
	}
	return more || found, err
}

// begin starts the run of a task that was claimed in a term, and reports whether it did. If
// the term is over, or the agent must be asked first, the claim is returned.
func (d *Dispatcher) begin(l *lane, t *term, c engine.Claimed) bool {
	why := "the agent went to another director before the task was sent"
	if !signalbox.Isolated(c.Task.Slot) && d.dataLossSuspected(l) {
		why = reasonDataLoss
	} else {
		r := d.newRun(l, t, c)
		r.startTrace()
		if d.start(r, (*run).dispatch) {
			return true
		}
		if d.Ctx.Err() != nil {
			return false
		}
	}
	ctx, cancel := context.WithTimeout(d.Ctx, giveBackFor)
	defer cancel()
	if _, err := d.Engine.Unsent(ctx, c.Task, why); err != nil {
		d.Log.Warn("claim not put back: the director that holds the agent will do so", "queue_id", c.Task.ID, "error", err)
	}
	return false
}

// giveBackFor bounds the attempt to return a claim.
const giveBackFor = 5 * time.Second

// newRun makes the run of a task. Its context ends when the dispatcher stops, the agent
// goes to another director, or the execution is taken away.
func (d *Dispatcher) newRun(l *lane, t *term, c engine.Claimed) *run {
	r := &run{
		Run: execution.NewRun(c, d.opts.Monotonic(), d.Engine.Now), d: d, lane: l, term: t, pollNow: execution.NewSignal(), done: make(chan struct{}),
		session: c.Task.SessionID, request: c.Request, env: c.Env, holds: c.Holds, agentTask: c.Task.TaskID, seenBefore: map[string]bool{},
	}
	r.ctx, r.stop = context.WithCancel(t.ctx)
	return r
}

// start registers a run and starts its goroutine, unless its term is over.
func (d *Dispatcher) start(r *run, first func(*run, context.Context)) bool {
	d.Mu.Lock()
	defer d.Mu.Unlock()
	begun := d.goInTerm(r.lane, r.term, func() {
		defer close(r.done)
		defer d.work.Done()
		defer r.stop()
		r.turn("run")
		t := r.row()
		_ = execution.ContinueLog(r.ctx, d.Engine.Read(), &t, r.Tail) // on an error the log starts with this attempt
		first(r, r.ctx)
		d.runEnded(r)
	})
	if !begun {
		r.stop()
		return false
	}
	r.lane.put(r)
	d.Runs[r.ID] = r
	d.Update(r.lane)
	d.work.Begin()
	return true
}

// remove unregisters a run. Mu is held.
func (d *Dispatcher) remove(r *run) {
	r.lane.remove(r)
	if d.Runs[r.ID] == r {
		delete(d.Runs, r.ID)
	}
}

// claimBehind returns the context for the change that ends a run: the agent's next claim
// follows it in the same commit, if the store supports that. Not for an agent without
// fences, whose id for the run must be recorded first, nor for one that names its sessions
// itself.
func (d *Dispatcher) claimBehind(ctx context.Context, r *run) context.Context {
	if d.opts.Turn != nil || r.Isolated {
		return ctx
	}
	return store.Followed(ctx, func() {
		d.Mu.Lock()
		defer d.Mu.Unlock()
		if l := r.lane; l.Runs[r.ID] == r && l.Row.Fencing && l.status.Sessions {
			r.lane.setEnding(r, true)
			d.Update(r.lane)
			r.lane.Wake.Send()
		}
	})
}

// cancelEnding withdraws that the slot of a run may be claimed.
func (d *Dispatcher) cancelEnding(r *run) {
	d.Mu.Lock()
	defer d.Mu.Unlock()
	r.lane.setEnding(r, false)
	d.Update(r.lane)
}

// runEnded removes a run from its lane and has the lane claim again.
func (d *Dispatcher) runEnded(r *run) {
	r.Tail.End()
	d.Mu.Lock()
	l := r.lane
	d.remove(r)
	l.recordEnded(r)
	d.OfferUndecided(l) // in case its offer decided nothing
	if r.withheld && l.term == r.term && !l.withholdsFence(r.Fence) {
		r.withheld = false
		l.withheld = append(l.withheld, withheld{
			Slot: signalbox.Slot{Agent: l.Name, Slot: r.Slot, TaskID: r.ID, Fence: r.Fence, Withheld: true}, id: r.agentTask,
		})
		l.probing.Send()
	}
	if l.Removed {
		d.refresh.Request()
	}
	if r.Isolated {
		l.Bypass.Check()
	}
	d.Update(l)
	d.Mu.Unlock()
	l.Wake.Send()
}
