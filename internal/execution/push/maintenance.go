package push

import (
	"context"
	"time"

	"github.com/signalbox-ai/signalbox/internal/execution"
)

// Intervals of the slower parts of a round.
const (
	reconcileEvery = 10 * time.Second
	pruneEvery     = time.Minute
)

// rounds does what is due by time: waking due tasks, ending overdue ones, renewing leases,
// pruning.
type rounds struct {
	d          *Dispatcher
	renewed    execution.Every
	reconciled execution.Every
	pruned     execution.Every
	ticked     execution.Every
	suspects   map[string]suspect
	next       time.Time // when the next task is due, as last known
}

// round does what is due and returns when the next round is.
func (c *rounds) round(ctx context.Context) time.Duration {
	d, now := c.d, c.d.opts.Monotonic()
	complain := func(what string, err error) { d.Maintenance.LogError(ctx, what, err) }
	_, next, err := d.Engine.Wake(ctx) // applied sees each
	complain("due tasks not woken", err)
	if !d.single() && !c.next.IsZero() && !d.Engine.Now().Before(c.next) {
		d.Recheck.Request() // another director may have woken it, which is not journalled
	}
	c.next = next
	if c.ticked.Due(now, d.opts.Tick) {
		_, err = d.Engine.EndOverdue(ctx)
		complain("overdue tasks not ended", err)
		complain("pauses not ended", d.Engine.ResumeDue(ctx))
		complain("gates not opened", d.Engine.OpenGates(ctx))
		complain("budgets not read", d.Engine.RefreshBudgets(ctx))
		d.enforceLimits()
	}
	d.Backstop(ctx)
	if c.renewed.Due(now, execution.RenewInterval(d.Engine)) {
		complain("leases not renewed", d.Renew(ctx))
	}
	if c.reconciled.Due(now, reconcileEvery) {
		c.suspects = d.reconcile(ctx, c.suspects)
		if !d.single() {
			d.compareRuns(ctx)
		}
	}
	if c.pruned.Due(now, pruneEvery) {
		d.prune(ctx)
	}
	if next.IsZero() {
		return d.opts.Tick
	}
	// A due time in the past was left over by a full batch: continue at once.
	return min(max(next.Sub(d.Engine.Now()), time.Millisecond), d.opts.Tick)
}

// unknownAway counts the absence of unknown agents from the start of this director.
func (d *Dispatcher) unknownAway(name string, now time.Time) time.Duration {
	if d.pulls[name] {
		return 0
	}
	return now.Sub(d.started)
}

// pruneSteps bounds one round of prune; each step handles up to 500 tasks.
const pruneSteps = 100

func (d *Dispatcher) prune(ctx context.Context) {
	if err := d.Engine.PruneAccounts(ctx); err != nil {
		d.Log.Error("unused accounts not removed", "error", err)
	}
	for n := 0; n < pruneSteps && ctx.Err() == nil; n++ {
		did, err := d.Engine.Prune(ctx, d.opts.Keep)
		if err != nil {
			d.Log.Error("ended tasks not pruned", "error", err)
			return
		}
		if did.Tasks > 0 {
			d.Log.Info("", "queue", "pruned", "tasks", did.Tasks)
		}
		if n == 0 && did.Over > 0 {
			d.Log.Warn("ended tasks exceed queue.retention_bytes: the oldest are pruned before queue.retention is over",
				"over_bytes", did.Over)
		}
		for owner, over := range did.Owners {
			if n == 0 {
				d.Log.Warn("one caller's ended tasks exceed queue.caller_retention_bytes: its oldest are pruned before queue.retention is over",
					"caller", owner, "over_bytes", over)
			}
		}
		if !did.More {
			return
		}
	}
}
