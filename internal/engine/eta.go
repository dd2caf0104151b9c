package engine

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/internal/runtimes"
	"github.com/signalbox-ai/signalbox/internal/store"
)

// ETA is an estimated range until the start of a waiting task.
type ETA = runtimes.Range

// ETA estimates when a pending task starts. It is nil if the task is not pending, if it waits for something of
// unknown duration (a pause, an account, a budget, agents that are closed or gone, runs that have all outlasted
// their usual time), or if fewer than runtimes.Fewest runs are known.
func (e *Engine) ETA(ctx context.Context, t *signalbox.Task, pos store.Position) *ETA {
	if t.State != signalbox.Pending || pos.N == 0 || e.budgets.HoldingGate(t, "", "", e.Now()) != nil {
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
	return e.stats.of(queue, e.Now(), func() queueStats { return e.queueStats(ctx, queue) })
}

// whyNoETA says why there is no estimate for a pending task.
func (e *Engine) whyNoETA(ctx context.Context, t *signalbox.Task) string {
	stats, waits := e.statsOf(ctx, t.Queue), e.WaitsAt(t)
	switch {
	case waits != nil:
		return waits.Text
	case stats.slots == 0 && stats.overdue > 0:
		return "what runs now has outlasted its usual time"
	case stats.slots > 0 && stats.typical == nil:
		return fmt.Sprintf("fewer than %d runs are known", runtimes.Fewest)
	}
	return "what it waits for has no known end"
}

// Typical returns how long an agent's runs take; nil if fewer than runtimes.Fewest are known.
func (e *Engine) Typical(ctx context.Context, agent string) *ETA {
	return runtimes.Typical(e.runs.Of(ctx, agent, e.Now()))
}

// queueStats is the input of an estimate for a queue.
type queueStats struct {
	at          time.Time
	slots, free int
	overdue     int  // further slots, whose runs have outlasted their usual time: their end is unknown
	typical     *ETA // how long a run takes
}

// queueStatsTTL is how long stats are cached: with many agents they cost more than the
// submit that reports them.
const queueStatsTTL = time.Second

// statsCache holds the stats of queues.
type statsCache struct {
	mu         sync.Mutex
	stats      map[string]queueStats
	refreshing map[string]bool // queues whose stats a caller is refreshing
}

// of returns the stats of a queue. If they are too old, one caller refreshes them, and the
// others use the old ones meanwhile.
func (r *statsCache) of(queue string, now time.Time, fresh func() queueStats) queueStats {
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
		if drain(pauses, a.Name) != nil || !a.Up || !slices.Contains(a.Queues(), queue) || a.Closed != nil || e.accounts.Blocked(a.Account) != nil ||
			e.budgets.HoldingGate(&signalbox.Task{}, a.Name, a.Account, e.Now()) != nil {
			continue
		}
		f.slots += a.Slots
		if !a.Held {
			f.free += max(0, a.Slots-a.InUse)
		}
		known := e.runs.Of(ctx, a.Name, e.Now())
		runs = append(runs, known...)
		if usual := runtimes.Typical(known); usual != nil && a.InUse > 0 {
			n := usual.Overdue(e.runs.StartsOf(ctx, a.Name, e.Now()), e.Now())
			f.slots, f.overdue = f.slots-n, f.overdue+n
		}
	}
	f.slots = max(0, f.slots)
	f.typical = runtimes.Typical(runs)
	return f
}
