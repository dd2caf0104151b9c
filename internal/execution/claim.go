package execution

import (
	"context"
	"slices"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/internal/engine"
)

// Applied wakes agents that can claim because of a durable change.
func (b *Registry[A, R]) Applied(a *engine.Applied) {
	t := &a.Task
	switch a.Kind {
	case signalbox.EventBudget:
		b.stopOver.Request()
		fallthrough
	case signalbox.EventResumed, signalbox.EventAccount:
		b.WakeAll()
		return
	}
	if a.From.InFlight() && !t.State.InFlight() {
		b.Mu.Lock()
		b.SlotFreed()
		b.Mu.Unlock()
	}
	if t.State == signalbox.Pending && (t.Ready || a.Partial) {
		b.Kick(t.Queue)
	}
	if a.NextTurn() {
		b.Recheck.Request()
	}
}

// Kick wakes an agent for a waiting task of a queue.
func (b *Registry[A, R]) Kick(queue string) {
	b.Mu.Lock()
	defer b.Mu.Unlock()
	b.kick(queue)
}

func (b *Registry[A, R]) kick(queue string) {
	if name, ok := signalbox.QueueBypass(queue); ok {
		if a, known := b.Lanes[name]; known {
			b.KickBypass(a)
		}
		return
	}
	a, found := b.next(queue)
	if !found {
		b.missed++
		return
	}
	l := a.Base()
	l.announced = append(l.announced, queue)
	// An agent whose claims fail must not stay ahead of the others.
	b.ready.MoveToBack(l.all)
	b.kinds[l.inKind].MoveToBack(l.kind)
	b.Update(a)
	l.Wake.Send()
}

// next returns the agent to wake for a task of a queue.
func (b *Registry[A, R]) next(queue string) (a A, found bool) {
	if name, ok := signalbox.QueueAgent(queue); ok {
		a, found = b.Lanes[name]
		return a, found && a.Base().Ready()
	}
	from := &b.ready
	if kind, pool := signalbox.QueueKind(queue); pool {
		from = b.kinds[kind]
	} else if queue != signalbox.QueueWork {
		return a, false // no agent serves it
	}
	if from == nil {
		return a, false
	}
	for e := from.Front(); e != nil; e = e.Next() {
		if a := e.Value.(A); !a.Base().short {
			return a, true
		}
	}
	return a, false
}

// KickBypass announces that a task may wait in an agent's bypass queue. Mu is held.
func (b *Registry[A, R]) KickBypass(a A) {
	l := a.Base()
	l.Bypass.Check()
	if b.Free(a, true) > 0 {
		l.Wake.Send()
	}
}

// WantsOf reports whether an agent here could claim a task of a queue now. Mu is held.
func (b *Registry[A, R]) WantsOf(queue string) bool {
	if name, ok := signalbox.QueueBypass(queue); ok {
		a, known := b.Lanes[name]
		return known && b.Free(a, true) > 0
	}
	_, found := b.next(queue)
	return found
}

// AnyReady reports whether any agent has room. Mu is held.
func (b *Registry[A, R]) AnyReady() bool { return b.ready.Len() > 0 }

// PassOn wakes other agents for what an agent was woken for and does not claim. Mu is held.
func (b *Registry[A, R]) PassOn(a A) {
	l := a.Base()
	signals := l.announced
	l.announced = nil
	b.Update(a)
	b.kickAll(signals)
}

func (b *Registry[A, R]) kickAll(queues []string) {
	for _, q := range queues {
		b.kick(q)
	}
}

// WakeAll wakes all agents: a queue was resumed, or changes were missed.
func (b *Registry[A, R]) WakeAll() {
	b.Mu.Lock()
	defer b.Mu.Unlock()
	b.resumed++
	b.clearDrained()
	for _, a := range b.Order {
		l := a.Base()
		l.Bypass.Check()
		l.Wake.Send()
	}
}

func (b *Registry[A, R]) clearDrained() {
	for _, a := range b.Order {
		if l := a.Base(); l.drained {
			l.drained = false
			b.Update(a)
		}
	}
}

// SlotFreed records that a slot has become free. Claims that found nothing because of the fleet limit, or
// because of resources that others hold, are tried again. Mu is held.
func (b *Registry[A, R]) SlotFreed() {
	b.freed++
	if b.anyShort {
		b.anyShort = false
		for _, a := range b.Order {
			if l := a.Base(); l.short {
				l.short = false
				l.Wake.Send()
			}
		}
	}
	if b.starved {
		b.starved = false
		b.Recheck.Request()
	}
}

// Claim claims a task for an agent, from the queues that it serves or, with isolated, from
// its bypass queue, if it has room and a task may wait. again says that another claim is
// worthwhile. What the agent was woken for and does not claim is passed on.
func (b *Registry[A, R]) Claim(ctx context.Context, a A, isolated bool) (c engine.Claimed, found, again bool, err error) {
	l := a.Base()
	b.Mu.Lock()
	able := !b.Draining && b.Free(a, isolated) > 0
	var signals []string
	if isolated {
		able = able && l.Bypass.take()
	} else {
		signals, l.announced = l.announced, nil
	}
	if able {
		l.Health.StartProbe() // until the offer's result is known
		l.missed = b.missed
	}
	b.Update(a)
	if !able && !b.Draining {
		b.kickAll(signals)
	}
	row, slots, above, freed, resumed := l.Row, l.Isolated, max(l.HighestFence, l.refusedFence), b.freed, b.resumed
	b.Mu.Unlock()
	if !able {
		return c, false, false, nil
	}
	if row.Source == signalbox.AgentPull {
		row.URL = "" // it holds the instance, not an address
	}
	drained := false
	worth, err := b.ShouldClaim(ctx, &row, isolated)
	switch {
	case !worth || err != nil:
	case isolated:
		c, found, err = b.Engine.ClaimBypass(ctx, row, slots, above)
	default:
		c, found, err = b.Engine.Claim(ctx, row, above)
		drained = c.Held
	}
	fleet := b.Engine.Options().Fleet > 0
	b.Mu.Lock()
	defer b.Mu.Unlock()
	switch {
	case signalbox.FieldOf(err) == "highest_fence": // no claim succeeds while it reports that fence
		l.refusedFence = 0 // use its next report
		b.kickAll(signals)
	case err != nil, drained && b.resumed != resumed: // it claims again
		l.announced = append(signals, l.announced...)
	case found:
		if fleet && !isolated {
			b.Recheck.Request() // below the limit there may be room for more
		}
		if i := slices.Index(signals, c.Task.Queue); i >= 0 {
			signals = slices.Delete(signals, i, i+1)
		}
		b.kickAll(signals)
	case drained:
		l.drained = true
		l.announced = append(signals, l.announced...)
		b.PassOn(a)
	case c.Short && !isolated:
		again = b.freed != freed // a slot was freed since
		l.short, b.anyShort = !again, b.anyShort || !again
		b.kickAll(slices.DeleteFunc(signals, func(queue string) bool { return queue == signalbox.AgentQueue(l.Name) }))
	case worth && (fleet || isolated): // isolated executions always have a fleet limit
		again = b.freed != freed // a slot was freed since
		b.starved = b.starved || !again
	}
	if isolated && (found || again || err != nil) {
		l.Bypass.Check() // another task, or the same one, may still wait
	}
	if !found {
		b.OfferUndecided(a)
	}
	b.Update(a)
	return c, found, again, err
}

// OfferUndecided records that a claimed task was not offered, or that the result of its
// offer says nothing about the agent. No agent was woken for tasks that became ready while
// this one was being probed, so it claims again. Mu is held.
func (b *Registry[A, R]) OfferUndecided(a A) {
	l := a.Base()
	if l.Health.ProbeUndecided() && l.missed != b.missed {
		l.Wake.Send()
	}
	b.Update(a)
}
