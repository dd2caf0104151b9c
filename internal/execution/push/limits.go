package push

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/api"
)

// Three limits end an execution, and the message of its end always says which
// one did: silence of the agent (execution_ttl, ask.go), the run timeout
// (timeout_seconds) and no progress (Stalled). The run timeout is the agent's to
// keep; it is stopped from here where the agent does not. All clocks are monotonic.
//
// A run makes progress when it prints something, or its agent says so
// (last_progress_at, silent_ms). An agent that tells of all the progress its runs
// make says so ("progress": true in /status; whoever pulls does). While a run waits
// for what it asked this director for, such as a place in a tool queue or the answer
// of another agent, it does not stand still.

// unreportedStall bounds a run without a timeout at an agent that reports no progress.
const unreportedStall = time.Hour

// Standstill is how long a run has shown no progress.
type Standstill struct {
	For      time.Duration
	Reported bool          // its agent tells of all progress
	Timeout  time.Duration // its run timeout; 0: it has none
}

// Stalled says why a run has stood still for too long, "" where it has not. limit
// is the stall limit: 0 is none; ttl is the slot lease.
func Stalled(limit, ttl time.Duration, s Standstill) string {
	why := "the stall limit (stall_limit) fired"
	switch {
	case limit != signalbox.StallByProgress:
	case s.Reported:
		limit, why = ttl, "its agent answers and tells of no progress (execution_ttl; stall_limit sets another limit)"
	case s.Timeout == 0:
		limit, why = unreportedStall, "its agent reports no progress, and the task has no timeout_seconds (stall_limit sets another limit)"
	}
	if limit <= 0 || s.For < limit {
		return ""
	}
	return fmt.Sprintf("no output for %s: %s", limit, why)
}

// clocks of a run that its agent accepted.
type clocks struct {
	overdue    time.Time // when its timeout and the grace are over; zero: it has none
	progressAt time.Time // when it last printed something
	said       time.Time // last_progress_at, as the agent last said it
	printed    time.Time // when it printed last, by the wall clock; zero: not yet
	fired      bool      // a limit fired, and the task is being stopped
	stopping   time.Time // since when it is known that a limit fired; zero: none did
}

// startClocks begins to measure, before the run is known to work: its limits
// hold from then on. The run timeout counts from the start of the
// run, also where another director saw that; the stall limit from now, until
// the agent says when it printed last.
func (r *run) startClocks() {
	d := r.d
	wall := d.engine.Now()
	d.mu.Lock()
	defer d.mu.Unlock()
	now := d.opts.Monotonic()
	r.clocks.progressAt = now
	if timeout := r.timeout(); timeout > 0 {
		ran := time.Duration(0)
		if r.adopted && !r.claimed.Task.StartedAt.IsZero() {
			ran = max(0, wall.Sub(r.claimed.Task.StartedAt))
		}
		r.clocks.overdue = now.Add(timeout + d.opts.RunGrace - ran)
	}
}

func (r *run) timeout() time.Duration {
	return time.Duration(r.claimed.Request.TimeoutSeconds) * time.Second
}

// progress notes that the run printed something.
func (r *run) progress() {
	d := r.d
	wall := d.engine.Now()
	d.mu.Lock()
	defer d.mu.Unlock()
	r.lane.lastProgress, r.clocks.printed = wall, wall
	r.clocks.progressAt = d.opts.Monotonic()
}

// progressTold takes in the state of the run, in its agent's word.
func (r *run) progressTold(s api.AgentTaskStatus) {
	if s.LastProgressAt == nil || s.StartedAt == nil {
		return
	}
	d := r.d
	wall := d.engine.Now()
	d.mu.Lock()
	defer d.mu.Unlock()
	r.progressSaid(api.AgentCurrentTask{StartedAt: *s.StartedAt, LastProgressAt: s.LastProgressAt}, d.opts.Monotonic(), wall)
}

// progressSaid takes in when the run printed last, in the agent's word.
// Dispatcher.mu is held.
func (r *run) progressSaid(c api.AgentCurrentTask, now, wall time.Time) {
	if c.LastProgressAt == nil || !c.LastProgressAt.After(r.clocks.said) {
		return
	}
	first := r.clocks.said.IsZero()
	r.clocks.said = *c.LastProgressAt
	r.clocks.progressAt = now
	if first && r.adopted {
		// It may have been long ago. How long after its start is measured by
		// one clock, the agent's, which may differ from ours.
		after := max(0, c.LastProgressAt.Sub(c.StartedAt))
		age := wall.Sub(r.claimed.Task.StartedAt.Add(after))
		r.clocks.progressAt = now.Add(-max(0, age))
	}
	r.clocks.printed = wall.Add(-now.Sub(r.clocks.progressAt))
}

// limit says which limit a run has reached.
func (r *run) limit(now time.Time) (reason signalbox.Reason, message string) {
	c := &r.clocks
	if c.fired || r.claimed.Task.State != signalbox.Working || c.progressAt.IsZero() {
		return "", ""
	}
	switch {
	case !c.overdue.IsZero() && !now.Before(c.overdue):
		return signalbox.ReasonRunTimeout, fmt.Sprintf("still running %s after its run timeout of %s (timeout_seconds): the agent did not keep it",
			inSeconds(r.d.opts.RunGrace), inSeconds(r.timeout()))
	}
	still := Standstill{For: now.Sub(c.progressAt), Reported: r.lane.status.Progress, Timeout: r.timeout()}
	if r.d.opts.StallLimit == signalbox.StallByProgress {
		still.For = r.heardAt.Sub(c.progressAt) // what an agent that is silent has not told counts as its silence
	}
	if message = Stalled(r.d.opts.StallLimit, r.d.engine.ExecutionTTL(), still); message != "" {
		return signalbox.ReasonStalled, message
	}
	return "", ""
}

// keepsOn reports whether the agent says that the run goes on although a limit
// fired, and it was told to stop, RunGrace ago.
func (r *run) keepsOn() bool {
	r.d.mu.Lock()
	defer r.d.mu.Unlock()
	t, c := &r.claimed.Task, &r.clocks
	if t.State != signalbox.Cancelling || t.StopReason == "" {
		return false
	}
	now := r.d.opts.Monotonic()
	if c.stopping.IsZero() {
		c.stopping = now
	}
	return now.Sub(c.stopping) >= r.d.opts.RunGrace
}

// inSeconds is a duration as timeouts are given.
func inSeconds(d time.Duration) string { return fmt.Sprintf("%gs", d.Seconds()) }

// stopOrder is a run that has reached a limit.
type stopOrder struct {
	run     *run
	task    signalbox.Task
	reason  signalbox.Reason
	message string
}

// enforceLimits stops the runs that have reached a limit.
func (d *Dispatcher) enforceLimits() {
	for _, o := range d.overLimit() {
		if o.reason == signalbox.ReasonStalled && d.inCall(o.run) {
			continue
		}
		_, err := d.engine.Stop(d.ctx, o.task, o.reason, o.message)
		switch signalbox.CodeOf(err) {
		case "", signalbox.CodeAlreadyEnded, signalbox.CodeStaleFence, signalbox.CodeNotFound:
			continue
		}
		if d.ctx.Err() == nil {
			d.log.Error("run over its limit not stopped, trying again", "queue_id", o.task.ID, "error", err)
		}
		d.mu.Lock()
		o.run.clocks.fired = false
		d.mu.Unlock()
	}
}

// inCall reports whether a run waits for what it asked this director for: then it
// does not stand still.
func (d *Dispatcher) inCall(r *run) bool {
	waits, err := d.engine.InCall(d.ctx, r.taskID)
	if err != nil {
		if d.ctx.Err() == nil {
			d.log.Error("calls of a run without progress not read, trying again", "queue_id", r.taskID, "error", err)
		}
		waits = true
	}
	if waits {
		d.mu.Lock()
		defer d.mu.Unlock()
		r.clocks.fired = false
		if err == nil {
			r.clocks.progressAt = d.opts.Monotonic()
		}
	}
	return waits
}

func (d *Dispatcher) overLimit() (due []stopOrder) {
	d.mu.Lock()
	defer d.mu.Unlock()
	now := d.opts.Monotonic()
	for _, r := range d.runs {
		if reason, message := r.limit(now); reason != "" {
			r.clocks.fired = true
			due = append(due, stopOrder{r, r.claimed.Task, reason, message})
		}
	}
	slices.SortFunc(due, func(a, b stopOrder) int { return cmp.Compare(a.run.fence, b.run.fence) })
	return due
}
