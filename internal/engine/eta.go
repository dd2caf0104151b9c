package engine

import (
	"context"
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
	refreshing map[string]bool // queues whose stats a caller is refreshing
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

// ETA estimates when a pending task starts. It is nil if the task is not pending, waits for
// something of unknown duration (a pause, a disconnected agent), or fewer than minRuns runs
// are known.
func (e *Engine) ETA(ctx context.Context, t *signalbox.Task, pos store.Position) *ETA {
	if t.State != signalbox.Pending || pos.N == 0 {
		return nil
	}
	stats := e.runs.queueStats(t.Queue, e.Now(), func() queueStats { return e.queueStats(ctx, t.Queue) })
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
	typical     *ETA // how long a run takes
}

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
		runs = append(runs, e.runs.get(ctx, a.Name, e.Now())...)
	}
	f.typical = typical(runs)
	return f
}
