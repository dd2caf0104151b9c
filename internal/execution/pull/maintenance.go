package pull

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/api"
	"github.com/signalbox-ai/signalbox/internal/execution"
)

// reloadEvery is how often it is looked for what nothing told of.
const reloadEvery = 10 * time.Second

// rounds do what is due by time.
type rounds struct {
	l                         *Lanes
	reloaded, renewed, judged execution.Every
}

func (c *rounds) round(ctx context.Context) time.Duration {
	l := c.l
	l.complain("waiting tasks not counted", l.kickWaiting(ctx))
	l.missSilent()
	l.endPauses()
	execution.Strand(ctx, l.engine, l.log, l.goneFor())
	now := l.opts.Monotonic()
	if c.reloaded.Due(now, reloadEvery) {
		l.complain("agents not loaded", l.loadAgents(ctx))
		l.complain("tasks in flight not read", l.loadRuns(ctx))
	}
	if c.renewed.Due(now, l.engine.RenewInterval()) {
		l.complain("leases not renewed", l.renew(ctx))
	}
	if c.judged.Due(now, l.engine.ExecutionTTL()/10) {
		l.complain("leases not read", l.loseSilent(ctx))
	}
	return l.opts.Tick
}

func (l *Lanes) complain(what string, err error) { l.maintenance.Complain(l.ctx, what, err) }

// missSilent marks down the agents that have said nothing for too long.
func (l *Lanes) missSilent() {
	lost := map[string]string{}
	now := l.opts.Monotonic()
	l.mu.Lock()
	for name, a := range l.lanes {
		if d := a.presence.Silence(now); a.presence.Up() && a.poll == nil && d >= l.opts.Silence {
			lost[name] = silentFor(d)
			a.presence.Gone(now, lost[name])
			l.tell(a)
		}
	}
	l.mu.Unlock()
	for _, name := range slices.Sorted(maps.Keys(lost)) {
		if l.opts.Holds(name) { // one director says it for all
			l.noteGone(name, lost[name])
		}
	}
}

// goneFor lists the agents that have been gone for the session grace, and whose
// sessions this director deals with.
func (l *Lanes) goneFor() map[string]time.Duration {
	gone := map[string]time.Duration{}
	l.mu.Lock()
	for name, a := range l.lanes {
		if away := a.presence.Away(l.opts.Monotonic()); away >= l.opts.SessionGrace {
			gone[name] = away
		}
	}
	l.mu.Unlock()
	maps.DeleteFunc(gone, func(name string, _ time.Duration) bool { return !l.opts.Holds(name) })
	return gone
}

// renew moves the end of the leases of what the agents named lately.
func (l *Lanes) renew(ctx context.Context) error {
	l.mu.Lock()
	named := execution.Renewable(l.runs, l.opts.Monotonic(), l.engine.RenewInterval())
	for _, t := range named {
		l.runs[t.ID].renewed = true
	}
	l.mu.Unlock()
	return l.engine.Renew(ctx, named)
}

// loseSilent ends the executions whose agents have named them to nobody for the
// slot lease: neither to this director nor, as the leases show, to another. How
// long that is is measured by the monotonic clock, from when this director began
// to look.
func (l *Lanes) loseSilent(ctx context.Context) error {
	slots, err := l.engine.Read().Slots(ctx)
	if err != nil {
		return err
	}
	ttl := l.engine.ExecutionTTL()
	var silent []*held
	l.mu.Lock()
	now := l.opts.Monotonic()
	for _, s := range slots {
		r, a := l.runs[s.TaskID], l.lanes[s.Agent]
		if r == nil || a == nil || r.Task.Fence != s.Fence {
			continue
		}
		if !r.expires.Equal(s.Expires) {
			if !r.renewed && !r.expires.IsZero() {
				r.Heard = now
			}
			r.expires, r.renewed = s.Expires, false
		}
		if now.Sub(r.Heard) >= ttl {
			silent = append(silent, &held{l, a, r, r.Task})
		}
	}
	l.mu.Unlock()
	for _, h := range silent {
		if !l.opts.Holds(h.lane.name) {
			continue
		}
		message := fmt.Sprintf("agent %s has said nothing of the task for %s: the slot lease (execution_ttl) ran out", h.lane.name, ttl)
		if err := execution.Undecided(h.lose(ctx, message)); err != nil {
			return err
		}
	}
	return nil
}

// overLimit says which limit a run has reached, by what its agent says of it.
func (l *Lanes) overLimit(r *run, said api.PullRun) (o execution.StopOrder, over bool) {
	if r.Task.State != signalbox.Working || said.Stopping {
		return o, false
	}
	still := time.Duration(said.SilentMS) * time.Millisecond
	if !r.inCall.IsZero() {
		still = min(still, l.opts.Monotonic().Sub(r.inCall))
	}
	limits := execution.Limits{Stall: l.opts.StallLimit, Grace: l.opts.RunGrace, TTL: l.engine.ExecutionTTL()}
	reason, message := limits.Over(r.Timeout, execution.Pace{Ran: time.Duration(said.RanMS) * time.Millisecond, Still: still, Reported: true})
	return execution.StopOrder{Task: r.Task, Reason: reason, Message: message}, reason != ""
}

// learn reads the requests of runs that this director did not give out.
func (l *Lanes) learn(ctx context.Context, a *lane) error {
	var unknown []string
	l.mu.Lock()
	for id, r := range a.runs {
		if !r.learned {
			unknown = append(unknown, id)
		}
	}
	l.mu.Unlock()
	slices.Sort(unknown)
	for _, id := range unknown {
		c, err := l.engine.Load(ctx, id)
		if c.Task.ID == "" && execution.Undecided(err) != nil {
			return err
		}
		l.mu.Lock()
		if r := a.runs[id]; r != nil && r.Is(&c.Task) {
			r.Learn(&c) // where its env cannot be opened, all that its agent says is withheld
			r.learned = true
		}
		l.mu.Unlock()
	}
	return nil
}

// enforce stops the runs that have reached a limit.
func (l *Lanes) enforce(ctx context.Context, orders []execution.StopOrder) {
	for _, o := range orders {
		if execution.Enforce(ctx, l.engine, l.log, o) != execution.InCall {
			continue
		}
		l.mu.Lock()
		if r := l.runs[o.Task.ID]; r != nil && r.Is(&o.Task) {
			r.inCall = l.opts.Monotonic()
		}
		l.mu.Unlock()
	}
}
