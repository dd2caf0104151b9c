package pull

import (
	"context"
	"slices"
	"time"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/api"
	"github.com/signalbox-ai/signalbox/internal/engine"
	"github.com/signalbox-ai/signalbox/internal/execution"
)

// Claim answers an agent that asks for a task: with one, with what to stop or
// what it is asked about, or with nothing once the wait is over.
func (l *Lanes) Claim(ctx context.Context, name string, c api.PullClaim, wait time.Duration) (api.PullAnswer, error) {
	if err := checkClaim(&c); err != nil {
		return api.PullAnswer{}, err
	}
	a, err := l.laneOf(ctx, name, c.Instance)
	if err != nil {
		return api.PullAnswer{}, err
	}
	if err := l.learn(ctx, a); err != nil {
		return api.PullAnswer{}, err
	}
	s := said{slots: c.Slots, isolated: c.IsolatedSlots, held: c.Held, steps: c.Steps}
	if c.Director == "" || c.Director == l.id {
		s.fence = c.HighestFence
	}
	l.enforce(ctx, l.hear(a, s, c.Runs))
	p, err := l.enter(a, c.Runs)
	if err != nil {
		return api.PullAnswer{}, err
	}
	defer l.exit(p)
	wait = l.waitOf(wait)
	if c.Held > 0 {
		wait = min(wait, heldWait) // what holds its slots may end, which nobody tells but the agent
	}
	return l.answer(ctx, p, wait)
}

// heldWait bounds the wait of an agent with slots that are held.
const heldWait = 5 * time.Second

func checkClaim(c *api.PullClaim) error {
	switch {
	case c.Slots < 1 || c.Slots > signalbox.MaxAgentSlots:
		return signalbox.Invalid("slots", "slots must be 1 to %d, not %d", signalbox.MaxAgentSlots, c.Slots)
	case c.IsolatedSlots < 0 || c.IsolatedSlots > signalbox.MaxAgentSlots:
		return signalbox.Invalid("isolated_slots", "isolated_slots must be 0 to %d, not %d", signalbox.MaxAgentSlots, c.IsolatedSlots)
	case c.Held < 0:
		return signalbox.Invalid("held", "held must be 0 or more, not %d", c.Held)
	case c.HighestFence < 0:
		return signalbox.Invalid("highest_fence", "highest_fence must be 0 or more, not %d", c.HighestFence)
	}
	for i := range c.Runs {
		if r := &c.Runs[i]; r.Fence < 0 {
			return signalbox.Invalid("runs", "runs[%d].fence must be 0 or more, not %d", i, r.Fence)
		}
	}
	return nil
}

// waitOf bounds a wait: an agent that asks no oftener must look neither silent
// nor stalled.
func (l *Lanes) waitOf(wait time.Duration) time.Duration {
	wait = min(wait, MaxWait, l.engine.ExecutionTTL()/4)
	if l.opts.StallLimit > 0 {
		wait = min(wait, max(l.opts.StallLimit/4, time.Second))
	}
	return wait
}

// answer waits until there is something to say.
func (l *Lanes) answer(ctx context.Context, p *poll, wait time.Duration) (api.PullAnswer, error) {
	over := time.NewTimer(wait)
	defer over.Stop()
	for {
		answer, something, err := l.review(ctx, p.lane, l.runsOf(p), true)
		if something || err != nil {
			return answer, err
		}
		l.mu.Lock()
		unmet := l.unmet
		l.mu.Unlock()
		answer, something, err = l.offer(ctx, p)
		if something || err != nil {
			return answer, err
		}
		if !l.park(p, unmet) {
			continue
		}
		if !l.await(ctx, p, over.C) {
			return answer, nil
		}
	}
}

// await waits until the claim has to look again. It returns false where it is
// over.
func (l *Lanes) await(ctx context.Context, p *poll, over <-chan time.Time) bool {
	late := false
	select {
	case <-p.sign:
	case <-p.over:
	case <-over:
		late = true
	case <-ctx.Done():
	}
	l.turn("claim", p.lane.name, p.n)
	late = execution.Taken(over) || late
	execution.Taken(p.sign)
	l.mu.Lock()
	defer l.mu.Unlock()
	return !late && !p.ended && ctx.Err() == nil
}

// offer gives the agent a task if it can take one and one waits.
func (l *Lanes) offer(ctx context.Context, p *poll) (api.PullAnswer, bool, error) {
	ctx = context.WithoutCancel(ctx) // a claim that was begun is made; if nobody hears of it, it is given again
	c, found, err := l.claim(ctx, p)
	if err == nil && !found {
		c, found, err = l.claimIsolated(ctx, p)
	}
	if err == nil || signalbox.FieldOf(err) == "highest_fence" {
		l.mu.Lock()
		p.lane.barred = ""
		if err != nil {
			p.lane.barred, p.lane.fence = err.Error(), 0 // what it says next counts
		}
		l.tell(p.lane)
		l.mu.Unlock()
	}
	if err != nil || !found {
		return api.PullAnswer{}, false, err
	}
	l.mu.Lock()
	left := p.lane.presence.Leaving()
	l.mu.Unlock()
	if left { // while the claim was under way
		return api.PullAnswer{}, true, l.unreached(ctx, c.Task)
	}
	return l.give(p.lane, c, false), true, nil
}

// claim claims a task for one of the agent's slots.
func (l *Lanes) claim(ctx context.Context, p *poll) (c engine.Claimed, found bool, err error) {
	a := p.lane
	l.mu.Lock()
	woken := p.woken
	p.woken = ""
	if l.draining || !a.open() {
		l.kickHeld(woken)
		l.mu.Unlock()
		return c, false, nil
	}
	row, above, resumed := a.row, max(a.said.fence, a.fence), l.resumed
	l.mu.Unlock()
	if waits, err := l.waits(ctx, &row); !waits || err != nil {
		return c, false, err
	}
	row.URL = "" // the instance is no address
	c, found, err = l.engine.Claim(ctx, row, above)
	switch {
	case err != nil:
		l.kick(woken)
	case found:
		l.tries(a)
		if c.Task.Queue == woken {
			break
		}
		l.kick(woken) // what it was woken for still waits
	case !found && l.engine.Drained(ctx, a.name):
		l.mu.Lock()
		a.drained = l.resumed == resumed // else it looks again
		if !a.drained {
			p.sign.Send()
		}
		l.kickHeld(woken)
		l.mu.Unlock()
	}
	return c, found, err
}

// waits reports whether anything waits in the queues of an agent: most who ask
// ask in vain, and need not ask the store's writer.
func (l *Lanes) waits(ctx context.Context, row *signalbox.Agent) (bool, error) {
	lengths, err := l.engine.Read().Lengths(ctx, row.Queues()...)
	return slices.ContainsFunc(lengths, func(n int) bool { return n > 0 }), err
}

// claimIsolated claims a bypass task, where one may wait.
func (l *Lanes) claimIsolated(ctx context.Context, p *poll) (c engine.Claimed, found bool, err error) {
	a := p.lane
	l.mu.Lock()
	able := a.bypass && !l.draining && a.presence.Up() && a.health.Room(a.said.isolated-a.inUse(true)) > 0
	if able {
		a.bypass = false
	}
	row, slots, above := a.row, a.said.isolated, max(a.said.fence, a.fence)
	l.mu.Unlock()
	if !able {
		return c, false, nil
	}
	row.URL = ""
	c, found, err = l.engine.ClaimBypass(ctx, row, slots, above)
	if found {
		l.tries(a)
	}
	if found || err != nil {
		l.mu.Lock()
		a.bypass = true // there may be another one, or the same one still
		l.mu.Unlock()
	}
	return c, found, err
}

// give is the answer with a claimed task.
func (l *Lanes) give(a *lane, c engine.Claimed, again bool) api.PullAnswer {
	l.mu.Lock()
	r := l.putRun(a, c.Task)
	r.Learn(&c)
	r.learned = true
	r.Heard = l.opts.Monotonic()
	trace := r.trace
	l.mu.Unlock()
	if trace == "" && l.opts.Traces != nil {
		trace = l.opts.Traces.Execution(&c.Task, c.Request.Trace, again)
		l.mu.Lock()
		r.trace = trace
		l.mu.Unlock()
	}
	offer := execution.Offer(c, l.id)
	return api.PullAnswer{Task: &offer, Traceparent: trace, RunToken: l.engine.RunToken(&c.Task), EnvBy: offer.EnvBy}
}
