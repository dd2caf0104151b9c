package push

import (
	"time"

	"github.com/signalbox-ai/signalbox/api"
	"github.com/signalbox-ai/signalbox/internal/execution"
)

// Failed implements execution.Offerer.
func (r *run) Failed(reason string, sure bool) (spare bool, delay time.Duration) {
	d := r.d
	l := r.lane
	others := d.engine.OthersMayTake(l.name, r.row().Queue)
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

// TurnedAway implements execution.Offerer. An agent that says that it is idle and
// turns away all that it is offered is paused too.
func (r *run) TurnedAway(reason string) {
	r.d.mu.Lock()
	often := r.lane.term == r.term && r.lane.health.TurnedDown()
	r.lane.health.Untried()
	r.d.mark(r.lane)
	r.d.mu.Unlock()
	if often {
		r.Failed(reason, false)
	}
}

// Well implements execution.Offerer.
func (r *run) Well() { r.d.well(r.lane) }

// works notes what a status says of that. Dispatcher.mu is held.
func (l *lane) works(s api.AgentStatus) {
	if s.State == "working" {
		l.health.AtWork()
	}
}
