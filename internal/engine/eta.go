package engine

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/internal/store"
)

// ETA is an estimated range until the start of a waiting task.
type ETA struct {
	Low, High time.Duration
	Runs      int // how many runs it is based on
}

// An ETA is the 25th to 75th percentile of the newest keptRuns runs of each agent, and
// unknown below minRuns.
const (
	keptRuns = 40
	minRuns  = 5
)

// runTimes caches the run times of the newest completed tasks, by agent, and what follows
// from them for each queue.
type runTimes struct {
	mu         sync.Mutex
	read       store.Reader
	agents     map[string]*agentRuns
	stats      map[string]queueStats
	refreshing map[string]bool        // queues whose stats a caller is refreshing
	starts     map[string][]time.Time // of the running tasks, by agent
	startsAt   time.Time              // when starts were read
}

type agentRuns struct {
	times    []time.Duration // oldest first
	loadedAt time.Time
	stale    bool // another director has recorded a newer run
}

// runTimesTTL is how long stale run times are used: with hundreds of agents, another
// director records a run all the time.
const runTimesTTL = 10 * time.Second

// add records a run. If the agent's runs are not loaded, get will read it from the store.
func (r *runTimes) add(agent string, d time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if runs := r.agents[agent]; runs != nil {
		runs.times = append(runs.times, max(d, 0))
		runs.times = runs.times[max(0, len(runs.times)-keptRuns):]
	}
}

// invalidate marks the run times of an agent as stale.
func (r *runTimes) invalidate(agent string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if runs := r.agents[agent]; runs != nil {
		runs.stale = true
	}
}

// get returns the run times of an agent, oldest first.
func (r *runTimes) get(ctx context.Context, agent string, now time.Time) []time.Duration {
	r.mu.Lock()
	var old agentRuns
	runs := r.agents[agent]
	if runs != nil {
		old = *runs
	}
	r.mu.Unlock()
	if age := now.Sub(old.loadedAt); runs != nil && (!old.stale || (age >= 0 && age < runTimesTTL)) {
		return old.times
	}
	times, err := r.read.Durations(ctx, agent, keptRuns)
	if err != nil {
		return old.times // an estimate is not worth an error
	}
	slices.Reverse(times)
	r.mu.Lock()
	defer r.mu.Unlock()
	if newer := r.agents[agent]; newer != nil && newer.loadedAt.After(old.loadedAt) {
		return newer.times
	}
	r.agents[agent] = &agentRuns{times: times, loadedAt: now}
	return times
}

// startsOf returns when the running tasks of an agent started. They are read at most once
// in queueStatsTTL for all agents.
func (r *runTimes) startsOf(ctx context.Context, agent string, now time.Time) []time.Time {
	r.mu.Lock()
	age := now.Sub(r.startsAt)
	starts, fresh := r.starts[agent], r.starts != nil && age >= 0 && age < queueStatsTTL
	r.mu.Unlock()
	if fresh {
		return starts
	}
	tasks, err := r.read.InFlight(ctx)
	if err != nil {
		return starts // an estimate is not worth an error
	}
	all := map[string][]time.Time{}
	for i := range tasks {
		if t := &tasks[i]; t.State == signalbox.Working && t.Mode != signalbox.ModeBypass && !t.StartedAt.IsZero() {
			all[t.Agent] = append(all[t.Agent], t.StartedAt)
		}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.starts, r.startsAt = all, now
	return all[agent]
}

// ETA estimates when a pending task starts. It is nil if the task is not pending, waits for
// something of unknown duration (a pause, a disconnected agent, runs that have all
// outlasted their usual time), or fewer than minRuns runs are known.
func (e *Engine) ETA(ctx context.Context, t *signalbox.Task, pos store.Position) *ETA {
	if t.State != signalbox.Pending || pos.N == 0 {
		return nil
	}
	stats := e.statsOf(ctx, t.Queue)
	if stats.slots == 0 || stats.typical == nil {
		return nil
	}
	eta := &ETA{Runs: stats.typical.Runs}
	if ahead := pos.N - stats.free; ahead > 0 {
		rounds := time.Duration((ahead + stats.slots - 1) / stats.slots)
		// A running task has between none and all of its time left.
		eta.Low = (rounds - 1) * stats.typical.Low
		eta.High = rounds * stats.typical.High
	}
	if due := t.NotBefore.Sub(e.Now()); due > 0 {
		eta.Low, eta.High = max(eta.Low, due), max(eta.High, due)
	}
	return eta
}

func (e *Engine) statsOf(ctx context.Context, queue string) queueStats {
	return e.runs.queueStats(queue, e.Now(), func() queueStats { return e.queueStats(ctx, queue) })
}

// whyNoETA says why there is no estimate for a pending task.
func (e *Engine) whyNoETA(ctx context.Context, t *signalbox.Task) string {
	stats := e.statsOf(ctx, t.Queue)
	switch {
	case stats.slots == 0 && stats.overdue > 0:
		return "what runs now has outlasted its usual time"
	case stats.slots > 0 && stats.typical == nil:
		return fmt.Sprintf("fewer than %d runs are known", minRuns)
	}
	return "what it waits for has no known end"
}

// Typical returns how long an agent's runs take; nil if fewer than minRuns are known.
func (e *Engine) Typical(ctx context.Context, agent string) *ETA {
	return typical(e.runs.get(ctx, agent, e.Now()))
}

// typical returns the 25th to 75th percentile, by the nearest rank.
func typical(runs []time.Duration) *ETA {
	if len(runs) < minRuns {
		return nil
	}
	runs = slices.Sorted(slices.Values(runs))
	return &ETA{Low: runs[(len(runs)-1)/4], High: runs[(len(runs)-1)*3/4], Runs: len(runs)}
}

// queueStats is the input of an estimate for a queue.
type queueStats struct {
	at          time.Time
	slots, free int
	overdue     int  // slots, besides, whose runs have outlasted their usual time: no end is known
	typical     *ETA // how long a run takes
}

// leastOverdue is the least time after which a run counts as overdue: runs of
// milliseconds vary more than their percentiles say.
const leastOverdue = 5 * time.Second

// queueStatsTTL is how long stats are cached: with many agents they cost more than the
// submit that reports them.
const queueStatsTTL = time.Second

// queueStats returns the stats of a queue. If they are too old, one caller refreshes them,
// and the others use the old ones meanwhile.
func (r *runTimes) queueStats(queue string, now time.Time, fresh func() queueStats) queueStats {
	r.mu.Lock()
	f, ok := r.stats[queue]
	age := now.Sub(f.at)
	if ok && ((age >= 0 && age < queueStatsTTL) || r.refreshing[queue]) {
		r.mu.Unlock()
		return f
	}
	r.refreshing[queue] = true
	r.mu.Unlock()
	f = fresh()
	f.at = now
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.refreshing, queue)
	if len(r.stats) > signalbox.MaxAgents {
		clear(r.stats) // names come from callers: keep the map bounded
	}
	r.stats[queue] = f
	return f
}

func (e *Engine) queueStats(ctx context.Context, queue string) queueStats {
	var f queueStats
	pauses, err := e.pauses(ctx)
	if err != nil || paused(pauses, queue) {
		return f
	}
	var runs []time.Duration
	for _, a := range e.LiveAgents() {
		if drain(pauses, a.Name) != nil || !a.Up || !slices.Contains(a.Queues(), queue) {
			continue
		}
		f.slots += a.Slots
		if !a.Held {
			f.free += max(0, a.Slots-a.InUse)
		}
		known := e.runs.get(ctx, a.Name, e.Now())
		runs = append(runs, known...)
		if usual := typical(known); usual != nil && a.InUse > 0 {
			for _, start := range e.runs.startsOf(ctx, a.Name, e.Now()) {
				if e.Now().Sub(start) > max(usual.High, leastOverdue) {
					f.slots--
					f.overdue++
				}
			}
		}
	}
	f.slots = max(0, f.slots)
	f.typical = typical(runs)
	return f
}
