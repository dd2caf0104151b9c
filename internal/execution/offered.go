package execution

import "time"

// Offered takes in what an agent's answer to an offer says of it: it is the Offerer
// of all transports.
type Offered[A Agent[R], R Follower] struct {
	Book  *Book[A, R]
	Agent A
	Run   *Run
	// Over reports whether the agent is another director's by now; nil: it is not.
	// Mu is held.
	Over func() bool
	// Busy is told that the agent said busy to an offer for one of its slots. Mu is held.
	Busy func(why string)
}

func (o *Offered[A, R]) over() bool { return o.Over != nil && o.Over() }

// Failed implements Offerer.
func (o *Offered[A, R]) Failed(reason string, sure bool) (spare bool, delay time.Duration) {
	b, l := o.Book, o.Agent.Base()
	b.Mu.Lock()
	queue := o.Run.Task.Queue
	b.Mu.Unlock()
	others := b.Engine.OthersMayTake(l.Name, queue)
	b.Mu.Lock()
	if o.over() {
		b.Mu.Unlock()
		return false, 0
	}
	f := l.Health.Failed(reason, sure, others, b.Engine.Now(), b.Engine.Jitter)
	b.Mark(o.Agent)
	b.Mu.Unlock()
	if f.Closes {
		b.Log.Warn("", "agent", "closed", "name", l.Name, "error", reason, "retry_in", f.Pause)
	}
	if f.Round > 0 {
		b.endPause(o.Agent, f.Round, f.Pause)
	}
	return f.Spare, f.Delay
}

// endPause lets the agent be tried when its pause is over.
func (b *Book[A, R]) endPause(a A, round int, pause time.Duration) {
	l := a.Base()
	b.Spawn(func() {
		Sleep(b.Ctx, pause)
		b.Turn("health", l.Name, 0)
		b.Mu.Lock()
		if l.Health.Due(round) {
			l.Bypass.Look()
			b.Mark(a)
		}
		l.Wake.Send()
		b.Mu.Unlock()
	})
}

// TurnedAway implements Offerer. An agent that is to be had and turns away all that
// it is offered is paused too.
func (o *Offered[A, R]) TurnedAway(reason string) {
	b, l := o.Book, o.Agent.Base()
	b.Mu.Lock()
	often := !o.over() && l.Health.TurnedDown()
	b.Untried(o.Agent)
	b.Mu.Unlock()
	if often {
		o.Failed(reason, false)
	}
}

// Hold implements Offerer. The slots have nothing to do with isolated executions.
func (o *Offered[A, R]) Hold(why string) {
	if o.Run.Isolated {
		o.Book.holdBypass(o.Agent)
		return
	}
	o.Book.Mu.Lock()
	o.Busy(why)
	o.Book.Mark(o.Agent)
	o.Book.Mu.Unlock()
	o.TurnedAway(TurnsAway + why)
}

// RaiseFence implements Offerer.
func (o *Offered[A, R]) RaiseFence(highest int64) {
	o.Book.Mu.Lock()
	defer o.Book.Mu.Unlock()
	l := o.Agent.Base()
	l.refused = max(l.refused, highest)
}

// Well implements Offerer.
func (o *Offered[A, R]) Well() { o.Book.Well(o.Agent) }

// Well notes that an agent did what an agent does.
func (b *Book[A, R]) Well(a A) {
	b.Mu.Lock()
	defer b.Mu.Unlock()
	b.WellLocked(a)
}

// WellLocked is Well with Mu held.
func (b *Book[A, R]) WellLocked(a A) {
	l := a.Base()
	more, opened := l.Health.Well()
	b.Mark(a)
	if more {
		l.Wake.Send()
	}
	if opened {
		b.Log.Info("", "agent", "opened", "name", l.Name)
	}
}
