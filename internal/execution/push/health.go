package push

import (
	"errors"
	"time"

	"github.com/signalbox-ai/signalbox/api"
	"github.com/signalbox-ai/signalbox/internal/execution"
)

// blames reports whether a refusal speaks of the agent and not of the task, and
// whether that leaves no doubt.
func blames(err error) (agent, sure bool) {
	var no *refusal
	if !errors.As(err, &no) {
		return false, false
	}
	return execution.Blames(no.status, no.AgentRefusal.Error)
}

// failed notes a failure of an agent. spare says that it is closed: the task
// that met this does not pay for it.
func (d *Dispatcher) failed(r *run, reason string, sure bool) (spare bool, delay time.Duration) {
	l := r.lane
	others := d.engine.OthersMayTake(l.name, r.Task.Queue)
	d.mu.Lock()
	if l.term != r.term { // it is another director's by now
		d.mu.Unlock()
		return false, 0
	}
	f := l.health.Failed(reason, sure, others, d.engine.Now(), d.engine.Jitter)
	d.mark(l)
	d.mu.Unlock()
	if f.Closes {
		d.log.Warn("", "agent", "closed", "name", l.name, "error", reason, "retry_in", f.Pause)
	}
	if f.Round > 0 {
		d.endPause(l, f.Round, f.Pause)
	}
	return f.Spare, f.Delay
}

// endPause lets the agent be tried when its pause is over.
func (d *Dispatcher) endPause(l *lane, round int, pause time.Duration) {
	d.spawn(func() {
		execution.Sleep(d.ctx, pause)
		d.turn("health", l.name, 0)
		d.mu.Lock()
		if l.health.Due(round) {
			l.isolatedOffers.look()
			d.mark(l)
		}
		d.mu.Unlock()
		l.wake.Send()
	})
}

// well notes that an agent did what an agent does.
func (d *Dispatcher) well(l *lane) {
	d.mu.Lock()
	more, opened := l.health.Well()
	d.mark(l)
	d.mu.Unlock()
	if more {
		l.wake.Send()
	}
	if opened {
		d.log.Info("", "agent", "opened", "name", l.name)
	}
}

// turnedAway notes a 409. An agent that says that it is idle and turns away all
// that it is offered is paused too.
func (d *Dispatcher) turnedAway(r *run, reason string) {
	d.mu.Lock()
	often := r.lane.term == r.term && r.lane.health.TurnedDown()
	r.lane.health.Untried()
	d.mark(r.lane)
	d.mu.Unlock()
	if often {
		d.failed(r, reason, false)
	}
}

// works notes what a status says of that. Dispatcher.mu is held.
func (l *lane) works(s api.AgentStatus) {
	if s.State == "working" {
		l.health.AtWork()
	}
}

// untriedUnless notes that an offer that was to decide was not made, unless it was.
func (d *Dispatcher) untriedUnless(offered bool, l *lane) {
	if offered {
		return
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	l.health.Untried()
	d.mark(l)
}
