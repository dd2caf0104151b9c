package dispatch

import (
	"context"
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
		select {
		case <-ctx.Done():
			return
		case <-d.refresh:
			if err := d.loadAgents(ctx); err != nil && ctx.Err() == nil {
				d.log.Error("agents not loaded, trying again", "error", err)
				poke(d.refresh)
				sleep(ctx, claimRetry)
			}
			continue
		case <-d.recheck:
			if err := d.kickWaiting(ctx); err != nil && ctx.Err() == nil {
				poke(d.recheck)
				sleep(ctx, claimRetry)
			}
			continue
		case <-d.care:
		case <-timer.C:
		}
		timer.Reset(c.round(ctx))
	}
}

// chores remembers when what was done last.
type chores struct {
	d          *Dispatcher
	renewed    time.Time
	reconciled time.Time
	pruned     time.Time
	ticked     time.Time
	suspects   map[string]suspect
}

// round does what is due and returns when the next round is.
func (c *chores) round(ctx context.Context) time.Duration {
	d, now := c.d, c.d.opts.Monotonic()
	_, next, err := d.engine.Wake(ctx) // applied hears of each
	c.complain(ctx, "due tasks not woken", err)
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
	for name, gone := range d.goneFor() {
		if err := d.engine.Strand(ctx, name, gone); err != nil && ctx.Err() == nil {
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
		if !ok {
			continue
		}
		since := d.started
		if l := d.lanes[name]; l != nil {
			if l.up {
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

func (d *Dispatcher) prune(ctx context.Context) {
	for ctx.Err() == nil {
		n, err := d.engine.Prune(ctx, d.opts.Retention)
		if err != nil {
			d.log.Error("ended tasks not pruned", "error", err)
			return
		}
		if n == 0 {
			return
		}
		d.log.Info("", "queue", "pruned", "tasks", n)
	}
}
