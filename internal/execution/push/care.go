package push

import (
	"context"
	"maps"
	"slices"
	"time"

	"github.com/signalbox-ai/signalbox"
)

// How often the slower parts of care are due.
const (
	reconcileEvery = 10 * time.Second
	pruneEvery     = time.Minute
)

// careLoop does what is due by time: waking tasks whose time has come, ending
// overdue ones, renewing leases, pruning. The tick is the backstop behind the
// events: nothing waits for it where an event was seen.
func (d *Dispatcher) careLoop() {
	ctx := d.ctx
	timer := time.NewTimer(0)
	defer timer.Stop()
	c := chores{d: d}
	for {
		agents, queues, due := d.cares(ctx, timer.C)
		if ctx.Err() != nil {
			return
		}
		if agents {
			d.again(ctx, d.refresh, "agents not loaded, trying again", d.loadAgents(ctx))
		}
		if queues {
			d.again(ctx, d.recheck, "waiting tasks not looked for, trying again", d.kickWaiting(ctx))
		}
		if due {
			timer.Reset(c.round(ctx))
		}
	}
}

// cares waits until there is something to do, and says what all there is: it is
// done in one order, whatever came first.
func (d *Dispatcher) cares(ctx context.Context, tick <-chan time.Time) (agents, queues, due bool) {
	select {
	case <-ctx.Done():
		return false, false, false
	case <-d.refresh:
		agents = true
	case <-d.recheck:
		queues = true
	case <-d.care:
		due = true
	case <-tick:
		due = true
	}
	d.turn("care", "", 0)
	return taken(d.refresh) || agents, taken(d.recheck) || queues, taken(d.care) || taken(tick) || due
}

// taken takes what lies in a channel, and reports whether there was anything.
func taken[T any](c <-chan T) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

// again does what failed once more, a little later.
func (d *Dispatcher) again(ctx context.Context, sign chan struct{}, what string, err error) {
	if err == nil || ctx.Err() != nil {
		return
	}
	d.log.Error(what, "error", err)
	poke(sign)
	sleep(ctx, claimRetry)
	d.turn("care", "", 0)
}

// chores remembers when what was done last.
type chores struct {
	d          *Dispatcher
	renewed    time.Time
	reconciled time.Time
	pruned     time.Time
	ticked     time.Time
	suspects   map[string]suspect
	next       time.Time // when a task is due, as it was last known
}

// round does what is due and returns when the next round is.
func (c *chores) round(ctx context.Context) time.Duration {
	d, now := c.d, c.d.opts.Monotonic()
	_, next, err := d.engine.Wake(ctx) // applied hears of each
	c.complain(ctx, "due tasks not woken", err)
	if !d.alone() && !c.next.IsZero() && !d.engine.Now().Before(c.next) {
		poke(d.recheck) // another director may have woken it, which is told to nobody
	}
	c.next = next
	if c.due(&c.ticked, now, d.opts.Tick) {
		_, err = d.engine.EndOverdue(ctx)
		c.complain(ctx, "overdue tasks not ended", err)
		c.complain(ctx, "pauses not ended", d.engine.ResumeDue(ctx))
		d.strand(ctx)
		c.complain(ctx, "waiting tasks not counted", d.kickWaiting(ctx))
		d.enforceLimits()
	}
	if c.due(&c.renewed, now, d.engine.RenewInterval()) {
		c.complain(ctx, "leases not renewed", d.engine.Renew(ctx, d.heardOf()))
	}
	if c.due(&c.reconciled, now, reconcileEvery) {
		c.suspects = d.reconcile(ctx, c.suspects)
		if !d.alone() {
			d.compareRuns(ctx)
		}
	}
	if c.due(&c.pruned, now, pruneEvery) {
		d.prune(ctx)
	}
	if next.IsZero() {
		return d.opts.Tick
	}
	// A task that is due in the past was left by a full batch: go on at once.
	return min(max(next.Sub(d.engine.Now()), time.Millisecond), d.opts.Tick)
}

func (c *chores) due(last *time.Time, now time.Time, every time.Duration) bool {
	if !last.IsZero() && now.Sub(*last) < every {
		return false
	}
	*last = now
	return true
}

func (c *chores) complain(ctx context.Context, what string, err error) {
	if err != nil && ctx.Err() == nil {
		c.d.log.Error(what, "error", err)
	}
}

// heardOf lists the tasks whose agents were heard of them within the last
// two renewals: their leases are renewed.
func (d *Dispatcher) heardOf() []signalbox.Task {
	d.mu.Lock()
	defer d.mu.Unlock()
	var held []signalbox.Task
	now := d.opts.Monotonic()
	for _, r := range d.runs {
		if now.Sub(r.heardAt) < 2*d.engine.RenewInterval() {
			held = append(held, r.claimed.Task)
		}
	}
	return held
}

// strand deals with the session tasks of agents that have been gone for the
// session grace.
func (d *Dispatcher) strand(ctx context.Context) {
	gone := d.goneFor()
	for _, name := range slices.Sorted(maps.Keys(gone)) {
		if err := d.engine.Strand(ctx, name, gone[name]); err != nil && ctx.Err() == nil {
			d.log.Error("session tasks of a gone agent not dealt with", "agent", name, "error", err)
		}
	}
}

// goneFor lists the agents that have been gone for the session grace. Agents
// that hold sessions and are not even known count from the start on.
func (d *Dispatcher) goneFor() map[string]time.Duration {
	gone := map[string]time.Duration{}
	now := d.opts.Monotonic()
	counts, err := d.engine.Read().Counts(d.ctx)
	if err != nil {
		return gone
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	for queue := range counts.Queues {
		name, ok := signalbox.QueueAgent(queue)
		if !ok || d.pulls[name] {
			continue
		}
		since := d.started
		if l := d.lanes[name]; l != nil {
			if l.up || l.term == nil {
				continue
			}
			since = l.downSince
		}
		if away := now.Sub(since); away >= d.opts.SessionGrace {
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
