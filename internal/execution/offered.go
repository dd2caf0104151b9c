package execution

import (
	"slices"
	"time"

	"github.com/signalbox-ai/signalbox/internal/engine"
)

// OfferReply applies what an agent's answer to an offer says about the agent: it is the
// Offerer of push and pull.
type OfferReply[A Agent[R], R Follower] struct {
	Registry *Registry[A, R]
	Agent    A
	Run      *Run
	// Superseded reports whether another director now dispatches to the agent; nil: false.
	// Mu is held.
	Superseded func() bool
	// Busy is called when the agent said busy to an offer for a normal slot. Mu is held.
	Busy func(why string)
}

func (o *OfferReply[A, R]) superseded() bool { return o.Superseded != nil && o.Superseded() }

// Failed implements Offerer.
func (o *OfferReply[A, R]) Failed(reason string, sure bool) (spare bool, delay time.Duration) {
	b, l := o.Registry, o.Agent.Base()
	b.Mu.Lock()
	queue := o.Run.Task.Queue
	b.Mu.Unlock()
	others := slices.ContainsFunc(b.Engine.LiveAgents(), func(o engine.LiveAgent) bool {
		return o.Name != l.Name && o.Up && o.Closed == nil && o.Serves(queue)
	})
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

// endPause makes the probe due when the pause is over.
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

// TurnedAway implements Offerer. An agent that seems available and turns offers away
// repeatedly is paused, too.
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

// Hold implements Offerer. Isolated executions do not affect the normal slots.
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

// Healthy implements Offerer.
func (o *OfferReply[A, R]) Healthy() { o.Registry.MarkHealthy(o.Agent) }

// MarkHealthy records that an agent worked as expected.
func (b *Registry[A, R]) MarkHealthy(a A) {
	b.Mu.Lock()
	defer b.Mu.Unlock()
	b.MarkHealthyLocked(a)
}

// MarkHealthyLocked is MarkHealthy with Mu held.
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
