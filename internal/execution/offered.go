package execution

import "time"

// Offered takes in what an agent's answer to an offer says of it: it is the Offerer
// of all transports.
type OfferReply[A Agent[R], R Follower] struct {
	Registry *Registry[A, R]
	Agent    A
	Run      *Run
	// Over reports whether the agent is another director's by now; nil: it is not.
	// Mu is held.
	Superseded func() bool
	// Busy is told that the agent said busy to an offer for one of its slots. Mu is held.
	Busy func(why string)
}

func (o *OfferReply[A, R]) superseded() bool { return o.Superseded != nil && o.Superseded() }

// Failed implements Offerer.
func (o *OfferReply[A, R]) Failed(reason string, sure bool) (spare bool, delay time.Duration) {
	b, l := o.Registry, o.Agent.Base()
	b.Mu.Lock()
	queue := o.Run.Task.Queue
	b.Mu.Unlock()
	others := b.Engine.OthersMayTake(l.Name, queue)
	b.Mu.Lock()
	if o.superseded() {
		b.Mu.Unlock()
		return false, 0
	}
	f := l.Health.Failed(reason, sure, others, b.Engine.Now(), b.Engine.Jitter)
	b.Update(o.Agent)
	b.Mu.Unlock()
	if f.Closes {
		b.Log.Warn("", "agent", "closed", "name", l.Name, "error", reason, "retry_in", f.Pause)
	}
	if f.Round > 0 {
		b.endPause(o.Agent, f.Round, f.Pause)
	}
	return f.Defer, f.Delay
}

// endPause lets the agent be tried when its pause is over.
func (b *Registry[A, R]) endPause(a A, round int, pause time.Duration) {
	l := a.Base()
	b.Spawn(func() {
		Sleep(b.Ctx, pause)
		b.Turn("health", l.Name, 0)
		b.Mu.Lock()
		if l.Health.Due(round) {
			l.Bypass.Check()
			b.Update(a)
		}
		l.Wake.Send()
		b.Mu.Unlock()
	})
}

// TurnedAway implements Offerer. An agent that is to be had and turns away all that
// it is offered is paused too.
func (o *OfferReply[A, R]) TurnedAway(reason string) {
	b, l := o.Registry, o.Agent.Base()
	b.Mu.Lock()
	often := !o.superseded() && l.Health.TurnedAway()
	b.OfferUndecided(o.Agent)
	b.Mu.Unlock()
	if often {
		o.Failed(reason, false)
	}
}

// Hold implements Offerer. The slots have nothing to do with isolated executions.
func (o *OfferReply[A, R]) Hold(why string) {
	if o.Run.Isolated {
		o.Registry.pauseBypass(o.Agent)
		return
	}
	o.Registry.Mu.Lock()
	o.Busy(why)
	o.Registry.Update(o.Agent)
	o.Registry.Mu.Unlock()
	o.TurnedAway(turnsAwayPrefix + why)
}

// RaiseFence implements Offerer.
func (o *OfferReply[A, R]) RaiseFence(highest int64) {
	o.Registry.Mu.Lock()
	defer o.Registry.Mu.Unlock()
	l := o.Agent.Base()
	l.refusedFence = max(l.refusedFence, highest)
}

// Well implements Offerer.
func (o *OfferReply[A, R]) Healthy() { o.Registry.MarkHealthy(o.Agent) }

// Well notes that an agent did what an agent does.
func (b *Registry[A, R]) MarkHealthy(a A) {
	b.Mu.Lock()
	defer b.Mu.Unlock()
	b.MarkHealthyLocked(a)
}

// WellLocked is Well with Mu held.
func (b *Registry[A, R]) MarkHealthyLocked(a A) {
	l := a.Base()
	more, opened := l.Health.Recover()
	b.Update(a)
	if more {
		l.Wake.Send()
	}
	if opened {
		b.Log.Info("", "agent", "opened", "name", l.Name)
	}
}
