package push

import (
	"context"
	"time"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/internal/execution"
	"github.com/signalbox-ai/signalbox/internal/store"
)

// How often the slower parts of a round are due.
const (
	reconcileEvery = 10 * time.Second
	pruneEvery     = time.Minute
)

// rounds do what is due by time: waking tasks whose time has come, ending
// overdue ones, renewing leases, pruning.
type rounds struct {
	d          *Dispatcher
	renewed    execution.Every
	reconciled execution.Every
	pruned     execution.Every
	ticked     execution.Every
	suspects   map[string]suspect
	next       time.Time // when a task is due, as it was last known
}

// round does what is due and returns when the next round is.
func (c *rounds) round(ctx context.Context) time.Duration {
	d, now := c.d, c.d.opts.Monotonic()
	complain := func(what string, err error) { d.maintenance.Complain(ctx, what, err) }
	_, next, err := d.engine.Wake(ctx) // applied hears of each
	complain("due tasks not woken", err)
	if !d.alone() && !c.next.IsZero() && !d.engine.Now().Before(c.next) {
		d.recheck.Ask() // another director may have woken it, which is told to nobody
	}
	c.next = next
	if c.ticked.Due(now, d.opts.Tick) {
		_, err = d.engine.EndOverdue(ctx)
		complain("overdue tasks not ended", err)
		complain("pauses not ended", d.engine.ResumeDue(ctx))
		counts, err := d.engine.Read().Counts(ctx)
		complain("waiting tasks not counted", err)
		execution.Strand(ctx, d.engine, d.log, d.goneFor(counts))
		d.kickQueues(counts)
		d.enforceLimits()
	}
	if c.renewed.Due(now, d.engine.RenewInterval()) {
		complain("leases not renewed", d.engine.Renew(ctx, d.heardOf()))
	}
	if c.reconciled.Due(now, reconcileEvery) {
		c.suspects = d.reconcile(ctx, c.suspects)
		if !d.alone() {
			d.compareRuns(ctx)
		}
	}
	if c.pruned.Due(now, pruneEvery) {
		d.prune(ctx)
	}
	if next.IsZero() {
		return d.opts.Tick
	}
	// A task that is due in the past was left by a full batch: go on at once.
	return min(max(next.Sub(d.engine.Now()), time.Millisecond), d.opts.Tick)
}

// heardOf lists the tasks whose leases are renewed.
func (d *Dispatcher) heardOf() []signalbox.Task {
	d.mu.Lock()
	defer d.mu.Unlock()
	return execution.Renewable(d.runs, d.opts.Monotonic(), d.engine.RenewInterval())
}

// goneFor lists the agents for which something waits and that have been gone for the
// session grace. Agents that hold sessions and are not even known count from the
// start on.
func (d *Dispatcher) goneFor(counts store.Counts) map[string]time.Duration {
	gone := map[string]time.Duration{}
	now := d.opts.Monotonic()
	d.mu.Lock()
	defer d.mu.Unlock()
	for queue := range counts.Queues {
		name, ok := signalbox.QueueAgent(queue)
		if !ok || d.pulls[name] {
			continue
		}
		away := now.Sub(d.started)
		if l := d.lanes[name]; l != nil {
			if l.term == nil {
				continue
			}
			away = l.presence.Away(now)
		}
		if away >= d.opts.SessionGrace {
			gone[name] = away
		}
	}
	return gone
}

// pruneSteps bounds one round of prune: each step looks at some 500 tasks.
const pruneSteps = 100

func (d *Dispatcher) prune(ctx context.Context) {
	for n := 0; n < pruneSteps && ctx.Err() == nil; n++ {
		did, err := d.engine.Prune(ctx, d.opts.Keep)
		if err != nil {
			d.log.Error("ended tasks not pruned", "error", err)
			return
		}
		if did.Tasks > 0 {
			d.log.Info("", "queue", "pruned", "tasks", did.Tasks)
		}
		if n == 0 && did.Over > 0 {
			d.log.Warn("more is kept of ended tasks than queue.retention_bytes: the oldest are forgotten before queue.retention is over",
				"over_bytes", did.Over)
		}
		for owner, over := range did.Owners {
			if n == 0 {
				d.log.Warn("more is kept of one caller's ended tasks than queue.caller_retention_bytes: its oldest are forgotten before queue.retention is over",
					"caller", owner, "over_bytes", over)
			}
		}
		if !did.More {
			return
		}
	}
}
