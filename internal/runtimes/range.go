package runtimes

import (
	"slices"
	"time"
)

// Range is a range of durations, taken from some runs.
type Range struct {
	Low, High time.Duration
	Runs      int // number of those runs
}

// Fewest is the minimum number of runs for a Range.
const Fewest = 5

// Typical returns the 25th to 75th percentile of runs, by the nearest rank; nil below Fewest.
func Typical(runs []time.Duration) *Range {
	if len(runs) < Fewest {
		return nil
	}
	runs = slices.Sorted(slices.Values(runs))
	return &Range{Low: runs[(len(runs)-1)/4], High: runs[(len(runs)-1)*3/4], Runs: len(runs)}
}

// leastOverdue is the minimum duration after which a run counts as overdue: runs of milliseconds vary more
// than their percentiles show.
const leastOverdue = 5 * time.Second

// Overdue returns how many of the runs with these start times have outlasted the range.
func (r *Range) Overdue(starts []time.Time, now time.Time) (n int) {
	for _, start := range starts {
		if now.Sub(start) > max(r.High, leastOverdue) {
			n++
		}
	}
	return n
}
