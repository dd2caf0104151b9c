package sqlite

import (
	"slices"
	"time"

	"github.com/signalbox-ai/signalbox"
)

// run is how long a completed task ran, by its place in the history.
type run struct {
	spot // ended, seq
	took time.Duration
}

// runs are the newest completed tasks of an agent, the oldest first. They are
// kept in memory: an index over them by agent is written at another place for
// each of ten thousand agents, which costs them a tenth of the writer's time.
type runs []run

// Bounds on what is kept of an agent, and looked at when the file is opened.
const (
	maxRuns  = 100
	loadRuns = 20_000
)

func compareRuns(a run, b spot) int { return compareSpots(a.spot, b) }

func (r runs) add(n run) runs {
	at, known := slices.BinarySearchFunc(r, n.spot, compareRuns)
	if known {
		return r
	}
	r = slices.Insert(r, at, n)
	if len(r) > maxRuns {
		r = slices.Delete(r, 0, 1)
	}
	return r
}

func (r runs) remove(at spot) runs {
	n, known := slices.BinarySearchFunc(r, at, compareRuns)
	if !known {
		return r
	}
	return slices.Delete(r, n, n+1)
}

// ran notes that a task was completed, or was and is pruned.
func (b *totals) ran(before, after *signalbox.Task) {
	switch {
	case after != nil && after.State == signalbox.Completed && (before == nil || before.State != signalbox.Completed):
		took := max(0, after.EndedAt.Sub(after.StartedAt)).Truncate(time.Millisecond)
		b.runs[after.Agent] = b.runs[after.Agent].add(run{spot{after.EndedAt.UnixMilli(), after.Seq}, took})
	case after == nil && before.State == signalbox.Completed:
		left := b.runs[before.Agent].remove(spot{before.EndedAt.UnixMilli(), before.Seq})
		b.runs[before.Agent] = left
		if len(left) == 0 {
			delete(b.runs, before.Agent)
		}
	}
}

func (b *board) durations(agent string, limit int) (took []time.Duration) {
	b.mu.RLock()
	defer b.mu.RUnlock()
	for _, r := range slices.Backward(b.runs[agent]) {
		if len(took) >= limit {
			break
		}
		took = append(took, r.took)
	}
	return took
}
