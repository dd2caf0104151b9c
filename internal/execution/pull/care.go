package pull

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/api"
	"github.com/signalbox-ai/signalbox/internal/execution/push"
)

// reloadEvery is how often it is looked for what nothing told of.
const reloadEvery = 10 * time.Second

// care does what is due by time. Nothing waits for it where an event was seen.
func (l *Lanes) care() {
	tick := time.NewTicker(l.opts.Tick)
	defer tick.Stop()
	c := chores{l: l}
	for {
		agents, runs, queues, due := l.cares(tick.C)
		if l.ctx.Err() != nil {
			return
		}
		if agents {
			l.again(l.refresh, "agents not loaded, trying again", l.loadAgents(l.ctx))
		}
		if runs {
			l.again(l.reload, "tasks in flight not read, trying again", l.loadRuns(l.ctx))
		}
		if queues {
			l.again(l.recheck, "waiting tasks not counted, trying again", l.kickWaiting(l.ctx))
		}
		if due {
			c.round()
		}
	}
}

// cares waits until there is something to do, and says what all there is: it is
// done in one order, whatever came first.
func (l *Lanes) cares(tick <-chan time.Time) (agents, runs, queues, due bool) {
	select {
	case <-l.ctx.Done():
		return false, false, false, false
	case <-l.refresh:
		agents = true
	case <-l.reload:
		runs = true
	case <-l.recheck:
		queues = true
	case <-tick:
		due = true
	}
	l.turn("pulls", "", 0)
	return taken(l.refresh) || agents, taken(l.reload) || runs, taken(l.recheck) || queues, taken(tick) || due
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

// chores remembers when what was done last.
type chores struct {
	l                         *Lanes
	reloaded, renewed, judged time.Time
}

func (c *chores) round() {
	l := c.l
	l.complain("waiting tasks not counted", l.kickWaiting(l.ctx))
	l.missSilent()
	l.endPauses()
	l.strand(l.ctx)
	now := l.opts.Monotonic()
	if due(&c.reloaded, now, reloadEvery) {
		l.complain("agents not loaded", l.loadAgents(l.ctx))
		l.complain("tasks in flight not read", l.loadRuns(l.ctx))
	}
	if due(&c.renewed, now, l.engine.RenewInterval()) {
		l.complain("leases not renewed", l.renew(l.ctx))
	}
	if due(&c.judged, now, l.engine.ExecutionTTL()/10) {
		l.complain("leases not read", l.loseSilent(l.ctx))
	}
}

func due(last *time.Time, now time.Time, every time.Duration) bool {
	if !last.IsZero() && now.Sub(*last) < every {
		return false
	}
	*last = now
	return true
}

func (l *Lanes) complain(what string, err error) bool {
	if err != nil && l.ctx.Err() == nil {
		l.log.Error(what, "error", err)
	}
	return err != nil && l.ctx.Err() == nil
}

// again does what failed once more, a little later.
func (l *Lanes) again(sign chan struct{}, what string, err error) {
	if !l.complain(what, err) {
		return
	}
	poke(sign)
	timer := time.NewTimer(200 * time.Millisecond)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-l.ctx.Done():
	}
	l.turn("pulls", "", 0)
}

// missSilent marks down the agents that have said nothing for too long.
func (l *Lanes) missSilent() {
	lost := map[string]string{}
	l.mu.Lock()
	for name, a := range l.lanes {
		if d := l.silence(a); a.up && a.poll == nil && d >= l.opts.Silence {
			lost[name] = silentFor(d)
			l.gone(a, lost[name])
		}
	}
	l.mu.Unlock()
	for _, name := range slices.Sorted(maps.Keys(lost)) {
		if l.opts.Holds(name) { // one director says it for all
			l.noteGone(name, lost[name])
		}
	}
}

// strand deals with the session tasks of agents that have been gone for the
// session grace.
func (l *Lanes) strand(ctx context.Context) {
	away := map[string]time.Duration{}
	l.mu.Lock()
	for name, a := range l.lanes {
		if d := l.opts.Monotonic().Sub(a.since); !a.up && d >= l.opts.SessionGrace {
			away[name] = d
		}
	}
	l.mu.Unlock()
	if len(away) == 0 {
		return
	}
	for _, name := range slices.Sorted(maps.Keys(away)) {
		if l.opts.Holds(name) {
			l.complain("session tasks of a gone agent not dealt with", l.engine.Strand(ctx, name, away[name]))
		}
	}
}

// renew moves the end of the leases of what the agents named lately.
func (l *Lanes) renew(ctx context.Context) error {
	l.mu.Lock()
	var named []signalbox.Task
	now := l.opts.Monotonic()
	for _, r := range l.runs {
		if now.Sub(r.heard) < 2*l.engine.RenewInterval() {
			named = append(named, r.task)
			r.renewed = true
		}
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
		if r == nil || a == nil || r.task.Fence != s.Fence {
			continue
		}
		if !r.expires.Equal(s.Expires) {
			if !r.renewed && !r.expires.IsZero() {
				r.heard = now
			}
			r.expires, r.renewed = s.Expires, false
		}
		if now.Sub(r.heard) >= ttl {
			silent = append(silent, &held{l, a, r, r.task})
		}
	}
	l.mu.Unlock()
	for _, h := range silent {
		if !l.opts.Holds(h.lane.name) {
			continue
		}
		message := fmt.Sprintf("agent %s has said nothing of the task for %s: the slot lease (execution_ttl) ran out", h.lane.name, ttl)
		if err := over(h.lose(ctx, message)); err != nil {
			return err
		}
	}
	return nil
}

// stopOrder is a run that has reached a limit.
type stopOrder struct {
	task    signalbox.Task
	reason  signalbox.Reason
	message string
}

// overLimit says which limit a run has reached, by what its agent says of it.
func (l *Lanes) overLimit(r *run, said api.PullRun) (o stopOrder, over bool) {
	if r.task.State != signalbox.Working || said.Stopping {
		return o, false
	}
	ran, silent := time.Duration(said.RanMS)*time.Millisecond, time.Duration(said.SilentMS)*time.Millisecond
	if !r.inCall.IsZero() {
		silent = min(silent, l.opts.Monotonic().Sub(r.inCall))
	}
	switch stalled := push.Stalled(l.opts.StallLimit, l.engine.ExecutionTTL(), push.Standstill{For: silent, Reported: true, Timeout: r.limit}); {
	case r.limit > 0 && ran >= r.limit+l.opts.RunGrace:
		return stopOrder{r.task, signalbox.ReasonRunTimeout, fmt.Sprintf("still running %s after its run timeout of %s (timeout_seconds): the agent did not keep it", l.opts.RunGrace, r.limit)}, true
	case stalled != "":
		return stopOrder{r.task, signalbox.ReasonStalled, stalled}, true
	}
	return o, false
}

// learnLimits reads the limits of runs that this director did not give out.
func (l *Lanes) learnLimits(ctx context.Context, a *lane) error {
	var unknown []string
	l.mu.Lock()
	for id, r := range a.runs {
		if !r.limited {
			unknown = append(unknown, id)
		}
	}
	l.mu.Unlock()
	slices.Sort(unknown)
	for _, id := range unknown {
		q, err := l.engine.Read().Request(ctx, id)
		if err != nil && signalbox.CodeOf(err) != signalbox.CodeNotFound {
			return err
		}
		l.mu.Lock()
		if r := a.runs[id]; r != nil {
			r.limited, r.limit = true, time.Duration(q.TimeoutSeconds)*time.Second
		}
		l.mu.Unlock()
	}
	return nil
}

// enforce stops the runs that have reached a limit.
func (l *Lanes) enforce(ctx context.Context, orders []stopOrder) {
	for _, o := range orders {
		if o.reason == signalbox.ReasonStalled && l.inCall(ctx, o.task) {
			continue
		}
		_, err := l.engine.Stop(ctx, o.task, o.reason, o.message)
		if err = over(err); err != nil && ctx.Err() == nil {
			l.log.Error("run over its limit not stopped, trying again", "queue_id", o.task.ID, "error", err)
		}
	}
}

// inCall reports whether a run waits for what it asked this director for: then it
// does not stand still.
func (l *Lanes) inCall(ctx context.Context, t signalbox.Task) bool {
	waits, err := l.engine.InCall(ctx, t.ID)
	if err != nil {
		if ctx.Err() == nil {
			l.log.Error("calls of a run without progress not read, trying again", "queue_id", t.ID, "error", err)
		}
		return true
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if r := l.runs[t.ID]; waits && r != nil && r.task.Fence == t.Fence {
		r.inCall = l.opts.Monotonic()
	}
	return waits
}
