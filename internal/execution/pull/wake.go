package pull

import (
	"slices"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/api"
	"github.com/signalbox-ai/signalbox/internal/engine"
	"github.com/signalbox-ai/signalbox/internal/execution"
)

// poll is a claim that waits.
type poll struct {
	lane       *lane
	wake       execution.Signal // the lane's, while this is its claim
	superseded chan struct{}    // closed when another claim of the agent has come
	n          int64            // counts claims

	// Guarded by Mu.
	runs  []api.PullRun // as the agent said, without those that it reported the end of since
	ended bool          // over is closed
}

// enter makes a claim the one of its agent.
func (l *Lanes) enter(a *lane, runs []api.PullRun) (*poll, error) {
	l.Mu.Lock()
	defer l.Mu.Unlock()
	if l.Draining {
		return nil, signalbox.Errorf(signalbox.CodeUnavailable, "this director is stopping and gives out no tasks: ask another one, or this one when it is back")
	}
	l.supersede(a)
	l.polls++
	a.Wake = execution.NewSignal() // of this claim alone: the one before may not have gone yet
	p := &poll{lane: a, wake: a.Wake, n: l.polls, superseded: make(chan struct{}), runs: slices.Clone(runs)}
	a.poll = p
	l.Update(a)
	return p, nil
}

// supersede ends the claim of an agent; the caller holds Mu.
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

// exit takes a claim off the books. What it was woken for is for others.
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

// applied hears of every durable change. It runs on the goroutine that made
// the change: it only leaves signs.
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

// forget drops what is known of an agent that was removed, or is now another
// one: its next request reads it anew.
func (l *Lanes) invalidate(name string) {
	l.Mu.Lock()
	defer l.Mu.Unlock()
	if a := l.Lanes[name]; a != nil {
		a.stale = true
		l.supersede(a)
	}
}

// take takes in a change of a task that an agent had or has in hand.
func (l *Lanes) applyChange(a *lane, c *engine.Applied) {
	t := c.Task
	r := a.Runs[t.ID]
	switch {
	case t.State.InFlight() && !c.Partial:
		if l.putRun(a, t); c.From == signalbox.Dispatching && t.State == signalbox.Working {
			l.MarkHealthyLocked(a)
		}
	case t.State.InFlight() && (r == nil || r.Task.Fence != t.Fence):
		l.reload.Request() // who it is about is not told
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
	a.Wake.Send()
}

// earlier reports whether an execution passes through a state before another: it
// never goes back.
func earlier(s, than signalbox.State) bool {
	order := []signalbox.State{signalbox.Dispatching, signalbox.Working, signalbox.Cancelling}
	return slices.Index(order, s) < slices.Index(order, than)
}

// Wants reports whether the row of the task that a journal entry is about is
// needed here, where another director wrote it.
func (l *Lanes) NeedsRow(e *signalbox.Entry) bool {
	l.Mu.Lock()
	defer l.Mu.Unlock()
	return l.Lanes[e.Agent] != nil
}

// Behind has everything looked at anew: changes of others were left out.
func (l *Lanes) Resync() {
	l.refresh.Request()
	l.reload.Request()
	l.WakeAll()
	l.Recheck.Request()
}
