package push

import (
	"time"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/api"
	"github.com/signalbox-ai/signalbox/internal/execution"
)

// clocks of an accepted run. All but agentProgress are monotonic.
type clocks struct {
	began         time.Time // when it began to run
	progressAt    time.Time // when it last printed something
	agentProgress time.Time // last_progress_at, as last reported
	fired         bool      // a limit was exceeded, and the task is being stopped
	stopping      time.Time // since when a stop is known; zero: none
}

// startClocks starts the clocks before the task is known to be working, so that its limits
// apply from then on. The run timeout counts from the start of the run, even if another
// director saw it; the stall limit from now, until the agent reports its last progress.
func (r *run) startClocks() {
	d := r.d
	wall := d.Engine.Now()
	d.Mu.Lock()
	defer d.Mu.Unlock()
	now := d.opts.Monotonic()
	r.clocks.began, r.clocks.progressAt = now, now
	if r.adopted && !r.Task.StartedAt.IsZero() {
		r.clocks.began = now.Add(-max(0, wall.Sub(r.Task.StartedAt)))
	}
}

// recordProgress records the last progress that the agent reports. Mu is held.
func (r *run) recordProgress(c api.AgentCurrentTask, now, wall time.Time) {
	if c.LastProgressAt == nil || !c.LastProgressAt.After(r.clocks.agentProgress) {
		return
	}
	first := r.clocks.agentProgress.IsZero()
	r.clocks.agentProgress = *c.LastProgressAt
	r.clocks.progressAt = now
	if first && r.adopted {
		// It may have been long ago. The time since its start is measured by one clock, the
		// agent's, which may differ from ours.
		after := max(0, c.LastProgressAt.Sub(c.StartedAt))
		age := wall.Sub(r.Task.StartedAt.Add(after))
		r.clocks.progressAt = now.Add(-max(0, age))
	}
	r.Printed = wall.Add(-now.Sub(r.clocks.progressAt))
}

// limit returns the limit that a run has exceeded.
func (r *run) limit(now time.Time) (reason signalbox.Reason, message string) {
	c, limits := &r.clocks, r.d.Limits()
	if c.fired || r.Task.State != signalbox.Working || c.progressAt.IsZero() {
		return "", ""
	}
	still := now.Sub(c.progressAt)
	if limits.Stall == signalbox.StallByProgress {
		still = r.Heard.Sub(c.progressAt) // a silent agent cannot report progress: that counts as its silence
	}
	return limits.Over(r.Timeout, execution.Pace{Ran: now.Sub(c.began), Still: still, Reported: r.lane.status.Progress})
}

// overstaysStop reports whether the agent says that the run continues although it was told
// to stop it for a limit, RunGrace ago.
func (r *run) overstaysStop() bool {
	r.d.Mu.Lock()
	defer r.d.Mu.Unlock()
	t, c := &r.Task, &r.clocks
	if t.State != signalbox.Cancelling || t.StopReason == "" {
		return false
	}
	now := r.d.opts.Monotonic()
	if c.stopping.IsZero() {
		c.stopping = now
	}
	return now.Sub(c.stopping) >= r.d.opts.RunGrace
}

// enforceLimits stops the runs that exceed a limit.
func (d *Dispatcher) enforceLimits() {
	runs, orders := d.overLimit()
	for _, o := range orders {
		became := execution.Enforce(d.Ctx, d.Engine, d.Log, o)
		if became == execution.Stopped {
			continue
		}
		d.Mu.Lock()
		c := &runs[o.Task.ID].clocks
		c.fired = false
		if became == execution.InCall {
			c.progressAt = d.opts.Monotonic()
		}
		d.Mu.Unlock()
	}
}

func (d *Dispatcher) overLimit() (runs map[string]*run, due []execution.StopOrder) {
	d.Mu.Lock()
	defer d.Mu.Unlock()
	now, runs := d.opts.Monotonic(), map[string]*run{}
	for id, r := range d.Runs {
		if reason, message := r.limit(now); reason != "" {
			r.clocks.fired, runs[id] = true, r
			due = append(due, execution.StopOrder{Task: r.Task, Reason: reason, Message: message})
		}
	}
	return runs, execution.InOrder(due)
}
