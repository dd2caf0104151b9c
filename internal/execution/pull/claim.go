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

// Claim answers an agent that asks for a task: with one, with runs to stop or to report on,
// or with nothing once the wait is over.
func (l *Lanes) Claim(ctx context.Context, name string, c api.PullClaim, wait time.Duration) (api.PullAnswer, error) {
	if err := checkClaim(&c); err != nil {
		return api.PullAnswer{}, err
	}
	a, err := l.laneOf(ctx, name, c.Instance)
	if err != nil {
		return api.PullAnswer{}, err
	}
	if err := l.loadRequests(ctx, a); err != nil {
		return api.PullAnswer{}, err
	}
	s := report{slots: c.Slots, isolated: c.IsolatedSlots, held: c.Held, steps: c.Steps}
	if c.Director == "" || c.Director == l.ID {
		s.fence = c.HighestFence
	}
	l.enforce(ctx, l.recordHeard(a, s, c.Runs))
	l.hear(a, &c)
	p, err := l.enter(a, c.Runs)
	if err != nil {
		return api.PullAnswer{}, err
	}
	defer l.exit(p)
	wait = l.waitOf(wait)
	if c.Held > 0 || c.Full != "" {
		wait = min(wait, heldWait) // which may end, and only the agent knows when
	}
	return l.answer(ctx, p, wait)
}

func (l *Lanes) hear(a *lane, c *api.PullClaim) {
	l.Mu.Lock()
	defer l.Mu.Unlock()
	a.ReportFolder(c.WorkDir, c.Workspace, c.FolderID)
	a.ReportFull(c.Full)
	l.Update(a)
	l.ReportAccount(a, c.Account)
}

// heldWait bounds the wait of an agent whose slots are in use by foreign work.
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

// waitOf bounds a wait, so that an agent that only asks that often looks neither silent nor
// stalled.
func (l *Lanes) waitOf(wait time.Duration) time.Duration {
	wait = min(wait, MaxWait, l.Engine.Options().ExecutionTTL/4)
	if l.opts.StallLimit > 0 {
		wait = min(wait, max(l.opts.StallLimit/4, time.Second))
	}
	return wait
}

// answer waits until there is something to answer.
func (l *Lanes) answer(ctx context.Context, p *poll, wait time.Duration) (api.PullAnswer, error) {
	over := time.NewTimer(wait)
	defer over.Stop()
	for {
		answer, something, err := l.review(ctx, p.lane, l.runsOf(p), true)
		if something || err != nil {
			return answer, err
		}
		answer, something, err = l.offer(ctx, p)
		if something || err != nil {
			return answer, err
		}
		if !l.await(ctx, p, over.C) {
			return answer, nil
		}
	}
}

// await waits until the claim must check again, and returns false if it is over.
func (l *Lanes) await(ctx context.Context, p *poll, over <-chan time.Time) bool {
	late := false
	select {
	case <-p.wake:
	case <-p.superseded:
	case <-over:
		late = true
	case <-ctx.Done():
	}
	l.Turn("claim", p.lane.Name, p.n)
	late = execution.Taken(over) || late
	execution.Taken(p.wake)
	l.Mu.Lock()
	defer l.Mu.Unlock()
	return !late && !p.ended && ctx.Err() == nil
}

// anyWaiting reports whether a task waits in the queues of an agent: most claims find none,
// and need no write.
func (l *Lanes) anyWaiting(ctx context.Context, row *signalbox.Agent, isolated bool) (bool, error) {
	if isolated {
		return true, nil
	}
	lengths, err := l.Engine.Read().Lengths(ctx, row.Queues()...)
	return slices.ContainsFunc(lengths, func(n int) bool { return n > 0 }), err
}

// offer claims a task for the agent, if there is one and it has room.
func (l *Lanes) offer(ctx context.Context, p *poll) (answer api.PullAnswer, something bool, err error) {
	a := p.lane
	ctx = context.WithoutCancel(ctx) // a claim is completed even if the caller is gone: the task is then delivered again
	c, found, again, err := l.registry.Claim(ctx, a, false)
	if err == nil && !found && !again {
		c, found, again, err = l.registry.Claim(ctx, a, true)
	}
	l.Mu.Lock()
	if signalbox.FieldOf(err) == "highest_fence" {
		a.claimRefused = err.Error()
		l.Update(a)
	}
	left := a.Presence.Leaving() // it stopped during the claim
	l.Mu.Unlock()
	switch {
	case again:
		p.wake.Send()
	case found && left:
		return answer, true, l.returnUndelivered(ctx, c.Task)
	case found:
		return l.deliver(a, c, false), true, nil
	}
	return answer, false, err
}

// deliver returns the answer with a claimed task.
func (l *Lanes) deliver(a *lane, c engine.Claimed, again bool) api.PullAnswer {
	l.Mu.Lock()
	r := l.putRun(a, c.Task)
	r.SetRequest(&c)
	r.requestLoaded = true
	r.Heard = l.opts.Monotonic()
	trace := r.trace
	l.Mu.Unlock()
	if trace == "" && l.opts.Traces != nil {
		trace = l.opts.Traces.Execution(&c.Task, c.Request.Trace, again)
		l.Mu.Lock()
		r.trace = trace
		l.Mu.Unlock()
	}
	offer := execution.Offer(l.Engine, c, l.ID)
	return api.PullAnswer{Task: &offer, Traceparent: trace, RunToken: l.Engine.Options().Sealer.RunToken(c.Task.ID, c.Task.Fence), EnvBy: offer.EnvBy}
}
