package sqlite

import (
	"slices"
	"time"

	"github.com/signalbox-ai/signalbox"
)

// run is the run time of a completed task, with its position in the history.
type run struct {
	position // ended, seq
	took     time.Duration
}

// runs are the newest completed tasks of an agent, oldest first. They are kept in memory: an
// index by agent would cost ten thousand agents a tenth of the writer's time.
type runs []run

// Bounds on the runs kept of an agent, and on the rows read when the file is opened.
const (
	maxRuns  = 100
	loadRuns = 20_000
)

func compareRuns(a run, b position) int { return comparePositions(a.position, b) }

func (r runs) add(n run) runs {
	at, known := slices.BinarySearchFunc(r, n.position, compareRuns)
	if known {
		return r
	}
	r = slices.Insert(r, at, n)
	if len(r) > maxRuns {
		r = slices.Delete(r, 0, 1)
	}
	return r
}

func (r runs) remove(at position) runs {
	n, known := slices.BinarySearchFunc(r, at, compareRuns)
	if !known {
		return r
	}
	return slices.Delete(r, n, n+1)
}

// countRun adds a completed task, or removes a pruned one.
func (b *totals) countRun(before, after *signalbox.Task) {
	switch {
	case after != nil && after.State == signalbox.Completed && (before == nil || before.State != signalbox.Completed):
		took := max(0, after.EndedAt.Sub(after.StartedAt)).Truncate(time.Millisecond)
		b.runs[after.Agent] = b.runs[after.Agent].add(run{position{after.EndedAt.UnixMilli(), after.Seq}, took})
	case after == nil && before.State == signalbox.Completed:
		left := b.runs[before.Agent].remove(position{before.EndedAt.UnixMilli(), before.Seq})
		b.runs[before.Agent] = left
		if len(left) == 0 {
			delete(b.runs, before.Agent)
		}
	}
}

func (b *liveTotals) durations(agent string, limit int) (took []time.Duration) {
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
