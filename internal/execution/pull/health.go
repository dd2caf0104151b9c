package pull

import (
	"time"
)

// An agent that pulls and fails in a way that speaks of itself is given nothing
// for a while, as one that the director calls (execution.Health). Each director
// decides that by what it hears, in memory.

// failed notes a failure of an agent. spare says that it is closed: the task that
// met this does not pay for it, and waits for delay where no other agent takes it.
func (l *Lanes) failed(a *lane, queue, reason string, sure bool) (spare bool, delay time.Duration) {
	others := l.engine.OthersMayTake(a.name, queue)
	l.mu.Lock()
	defer l.mu.Unlock()
	f := a.health.Failed(reason, sure, others, l.engine.Now(), l.engine.Jitter)
	if f.Round > 0 {
		a.round, a.retry = f.Round, l.opts.Monotonic().Add(f.Pause)
	}
	if f.Closes {
		l.log.Warn("", "agent", "closed", "name", a.name, "error", reason, "retry_in", f.Pause)
	}
	return f.Spare, f.Delay
}

// turnedAway notes a 409. An agent that asks for tasks and turns them away is
// paused too.
func (l *Lanes) turnedAway(a *lane, reason string) {
	l.mu.Lock()
	often := a.health.TurnedDown()
	a.health.Untried()
	l.mu.Unlock()
	if often {
		l.failed(a, "", reason, false)
	}
}

// well notes that an agent did what an agent does; mu is held.
func (l *Lanes) well(a *lane) {
	more, opened := a.health.Well()
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
}

// endPauses lets the agents be tried whose pause is over.
func (l *Lanes) endPauses() {
	now := l.opts.Monotonic()
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, a := range l.lanes {
		if !a.retry.IsZero() && !now.Before(a.retry) {
			a.retry = time.Time{}
			if a.health.Due(a.round) {
				a.bypass = true
				l.poke(a)
			}
		}
	}
}
