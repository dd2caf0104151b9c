package pull

import (
	"time"

	"github.com/signalbox-ai/signalbox/internal/execution"
)

// An agent that pulls and fails in a way that speaks of itself is given nothing
// for a while, as one that the director calls (execution.Health). Each director
// decides that by what it hears, in memory.

// Failed implements execution.Offerer.
func (h *held) Failed(reason string, sure bool) (spare bool, delay time.Duration) {
	l, a := h.l, h.lane
	others := l.engine.OthersMayTake(a.name, h.task.Queue)
	l.mu.Lock()
	defer l.mu.Unlock()
	f := a.health.Failed(reason, sure, others, l.engine.Now(), l.engine.Jitter)
	if f.Round > 0 {
		a.round, a.retry = f.Round, l.opts.Monotonic().Add(f.Pause)
	}
	if f.Closes {
		l.log.Warn("", "agent", "closed", "name", a.name, "error", reason, "retry_in", f.Pause)
	}
	l.tell(a)
	return f.Spare, f.Delay
}

// TurnedAway implements execution.Offerer. An agent that asks for tasks and turns
// them away is paused too.
func (h *held) TurnedAway(reason string) {
	h.l.mu.Lock()
	often := h.lane.health.TurnedDown()
	h.lane.health.Untried()
	h.l.tell(h.lane)
	h.l.mu.Unlock()
	if often {
		h.Failed(reason, false)
	}
}

// Hold implements execution.Offerer.
func (h *held) Hold(why string) {
	h.l.mu.Lock()
	h.lane.refused = true
	h.l.mu.Unlock()
	h.TurnedAway(execution.TurnsAway + why)
}

// RaiseFence implements execution.Offerer.
func (h *held) RaiseFence(highest int64) {
	h.l.mu.Lock()
	defer h.l.mu.Unlock()
	h.lane.fence = max(h.lane.fence, highest)
}

// Well implements execution.Offerer.
func (h *held) Well() {
	h.l.mu.Lock()
	defer h.l.mu.Unlock()
	h.l.well(h.lane)
}

// well notes that an agent did what an agent does; mu is held.
func (l *Lanes) well(a *lane) {
	more, opened := a.health.Well()
	l.tell(a)
	if more {
		l.poke(a)
	}
	if opened {
		l.log.Info("", "agent", "opened", "name", a.name)
	}
}

// tries notes that an agent was given a task, which decides where its pause is
// over.
func (l *Lanes) tries(a *lane) {
	l.mu.Lock()
	defer l.mu.Unlock()
	a.health.Try()
	l.tell(a)
}

// endPauses lets the agents be tried whose pause is over.
func (l *Lanes) endPauses() {
	now := l.opts.Monotonic()
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, a := range l.lanes {
		if !a.retry.IsZero() && !now.Before(a.retry) {
			a.retry = time.Time{}
			due := a.health.Due(a.round)
			l.tell(a)
			if due {
				a.bypass = true
				l.poke(a)
			}
		}
	}
}
