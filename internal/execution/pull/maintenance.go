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

// reloadInterval is the interval of the backstop reads.
const reloadInterval = 10 * time.Second

type rounds struct {
	l                                 *Lanes
	reloaded, renewed, silenceChecked execution.Every
}

func (c *rounds) round(ctx context.Context) time.Duration {
	l := c.l
	l.markSilentDown()
	l.Backstop(ctx)
	now := l.opts.Monotonic()
	if c.reloaded.Due(now, reloadInterval) {
		l.logError("agents not loaded", l.loadAgents(ctx))
		l.logError("tasks in flight not read", l.loadRuns(ctx))
	}
	if c.renewed.Due(now, execution.RenewInterval(l.Engine)) {
		l.logError("leases not renewed", l.Renew(ctx))
	}
	if c.silenceChecked.Due(now, l.Engine.Options().ExecutionTTL/10) {
		l.logError("leases not read", l.loseSilent(ctx))
	}
	return l.opts.Tick
}

func (l *Lanes) logError(what string, err error) { l.Maintenance.LogError(l.Ctx, what, err) }

// markSilentDown marks agents down that have been silent for too long.
func (l *Lanes) markSilentDown() {
	lost := map[string]string{}
	now := l.opts.Monotonic()
	l.Mu.Lock()
	for name, a := range l.Lanes {
		if d := a.Presence.Silence(now); a.Presence.Up() && a.poll == nil && d >= l.opts.Silence {
			lost[name] = silentFor(d)
			a.Presence.Gone(now, lost[name])
			l.Update(a)
		}
	}
	l.Mu.Unlock()
	for _, name := range slices.Sorted(maps.Keys(lost)) {
		if l.Holds(name) { // one director journals it for all
			l.noteGone(name, lost[name])
		}
	}
}

// loseSilent ends executions that their agents have not named for the slot lease, neither
// to this director nor, as the leases show, to another. The time is measured by the
// monotonic clock, from when this director started to watch.
func (l *Lanes) loseSilent(ctx context.Context) error {
	slots, err := l.Engine.Read().Slots(ctx)
	if err != nil {
		return err
	}
	ttl := l.Engine.Options().ExecutionTTL
	var silent []*runReport
	l.Mu.Lock()
	now := l.opts.Monotonic()
	for _, s := range slots {
		r, a := l.Runs[s.TaskID], l.Lanes[s.Agent]
		if r == nil || a == nil || r.Task.Fence != s.Fence {
			continue
		}
		if !r.expires.Equal(s.Expires) {
			if !r.Renewed && !r.expires.IsZero() {
				r.Heard = now
			}
			r.expires, r.Renewed = s.Expires, false
		}
		if now.Sub(r.Heard) >= ttl {
			silent = append(silent, &runReport{l, a, r, r.Task})
		}
	}
	l.Mu.Unlock()
	for _, h := range silent {
		if !l.Holds(h.lane.Name) {
			continue
		}
		message := fmt.Sprintf("agent %s has said nothing of the task for %s: the slot lease (execution_ttl) ran out", h.lane.Name, ttl)
		if err := execution.UnlessDecided(h.lose(ctx, message)); err != nil {
			return err
		}
	}
	return nil
}

// overLimit returns the limit that a run has exceeded, by its agent's report.
func (l *Lanes) overLimit(r *run, said api.PullRun) (o execution.StopOrder, over bool) {
	if r.Task.State != signalbox.Working || said.Stopping {
		return o, false
	}
	still := time.Duration(said.SilentMS) * time.Millisecond
	if !r.inCall.IsZero() {
		still = min(still, l.opts.Monotonic().Sub(r.inCall))
	}
	reason, message := l.Limits().Over(r.Timeout, execution.Pace{Ran: time.Duration(said.RanMS) * time.Millisecond, Still: still, Reported: true})
	return execution.StopOrder{Task: r.Task, Reason: reason, Message: message}, reason != ""
}

// loadRequests reads the requests of runs that this director did not deliver.
func (l *Lanes) loadRequests(ctx context.Context, a *lane) error {
	var unknown []string
	l.Mu.Lock()
	for id, r := range a.Runs {
		if !r.requestLoaded {
			unknown = append(unknown, id)
		}
	}
	l.Mu.Unlock()
	slices.Sort(unknown)
	for _, id := range unknown {
		if _, err := l.loadRequest(ctx, id); execution.UnlessDecided(err) != nil {
			return err
		}
	}
	return nil
}

// enforce stops runs that exceed a limit.
func (l *Lanes) enforce(ctx context.Context, orders []execution.StopOrder) {
	for _, o := range orders {
		if execution.Enforce(ctx, l.Engine, l.Log, o) != execution.InCall {
			continue
		}
		l.Mu.Lock()
		if r := l.Runs[o.Task.ID]; r != nil && r.Matches(&o.Task) {
			r.inCall = l.opts.Monotonic()
		}
		l.Mu.Unlock()
	}
}
