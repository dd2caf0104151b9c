package pull

import (
	"slices"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/api"
	"github.com/signalbox-ai/signalbox/internal/engine"
	"github.com/signalbox-ai/signalbox/internal/execution"
)

// poll is a waiting claim request.
type poll struct {
	lane       *lane
	wake       execution.Signal // the lane's, while this is its current claim
	superseded chan struct{}    // closed when another claim of the agent has come
	n          int64            // counts claims

	runs  []api.PullRun // as named by the agent, without those whose end it has reported since
	ended bool          // superseded is closed
}

// enter makes a claim the current one of its agent.
func (l *Lanes) enter(a *lane, runs []api.PullRun) (*poll, error) {
	l.Mu.Lock()
	defer l.Mu.Unlock()
	if l.Draining {
		return nil, signalbox.Errorf(signalbox.CodeUnavailable, "this director is stopping and gives out no tasks: ask another one, or this one when it is back")
	}
	l.supersede(a)
	l.polls++
	a.Wake = execution.NewSignal() // separate from the previous claim's, which may not have returned yet
	p := &poll{lane: a, wake: a.Wake, n: l.polls, superseded: make(chan struct{}), runs: slices.Clone(runs)}
	a.poll = p
	l.Update(a)
	return p, nil
}

// supersede ends the current claim of an agent. Mu is held.
func (l *Lanes) supersede(a *lane) {
	p := a.poll
	if p == nil {
		return
	}
	p.ended = true
	close(p.superseded)
	a.poll = nil
	l.PassOn(a)
}

// exit ends a claim. What it was woken for is passed on.
func (l *Lanes) exit(p *poll) {
	l.Mu.Lock()
	defer l.Mu.Unlock()
	if a := p.lane; a.poll == p {
		a.poll = nil
		l.PassOn(a)
	}
}

func (l *Lanes) runsOf(p *poll) []api.PullRun {
	l.Mu.Lock()
	defer l.Mu.Unlock()
	return slices.Clone(p.runs)
}

// applied observes durable changes. It runs on the goroutine that made the change, so it
// only sends signals.
func (l *Lanes) applied(c *engine.Applied) {
	t := c.Task
	if c.Kind == signalbox.EventAgentAdded || c.Kind == signalbox.EventAgentRemoved {
		l.invalidate(t.Agent) // until it has been read again
		l.refresh.Request()
		return
	}
	l.Mu.Lock()
	if a := l.Lanes[t.Agent]; a != nil && t.ID != "" {
		l.applyChange(a, c)
	}
	l.Mu.Unlock()
	l.Applied(c)
}

// invalidate marks the lane of an agent that was removed or replaced: its row is read
// before its next request.
func (l *Lanes) invalidate(name string) {
	l.Mu.Lock()
	defer l.Mu.Unlock()
	if a := l.Lanes[name]; a != nil {
		a.stale = true
		l.supersede(a)
	}
}

// applyChange records a change of a task that an agent had or has.
func (l *Lanes) applyChange(a *lane, c *engine.Applied) {
	t := c.Task
	r := a.Runs[t.ID]
	if takenUp(c) {
		l.MarkHealthyLocked(a)
	}
	switch {
	case t.State.InFlight() && !c.Partial:
		l.putRun(a, t)
	case t.State.InFlight() && (r == nil || r.Task.Fence != t.Fence):
		l.reload.Request() // the entry does not name its execution
		return
	case t.State.InFlight():
		if earlier(t.State, r.Task.State) {
			return // than a row read since
		}
		r.Task.State, r.Task.CancelRequested = t.State, r.Task.CancelRequested || t.CancelRequested || t.State == signalbox.Cancelling
	case r != nil && t.Fence >= r.Task.Fence:
		l.dropRun(r)
	default:
		return
	}
	a.Wake.Send()
}

// takenUp reports whether a change is the first that shows that an agent runs or ran its task. The task may
// have been cancelled before, and the end of a short run also shows that it was accepted.
func takenUp(c *engine.Applied) bool {
	return c.From == signalbox.Dispatching && (c.Kind == signalbox.EventAccept || c.Kind == signalbox.EventFinish)
}

// earlier reports whether an execution passes through s before than; it never goes back.
func earlier(s, than signalbox.State) bool {
	order := []signalbox.State{signalbox.Dispatching, signalbox.Working, signalbox.Cancelling}
	return slices.Index(order, s) < slices.Index(order, than)
}

// NeedsRow reports whether the row of the task that a foreign journal entry is about is
// needed here.
func (l *Lanes) NeedsRow(e *signalbox.Entry) bool {
	l.Mu.Lock()
	defer l.Mu.Unlock()
	return l.Lanes[e.Agent] != nil
}

// Resync recovers from missed journal entries.
func (l *Lanes) Resync() {
	l.refresh.Request()
	l.reload.Request()
	l.WakeAll()
	l.Recheck.Request()
}
