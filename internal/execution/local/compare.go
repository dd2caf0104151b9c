package local

import (
	"maps"
	"slices"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/internal/execution"
)

// compareRuns stops runs of tasks that are to be cancelled or are no longer ours, where the
// event was missed: another director made the change and its entry was skipped, or the
// store lost acknowledged data.
func (x *Executor) compareRuns() {
	x.mu.Lock()
	runs := slices.Collect(maps.Values(x.runs)) // read before the rows, so that new runs are not compared
	x.mu.Unlock()
	if len(runs) > 0 {
		execution.CompareRows(x.claimCtx, x.engine.Read(), runs, func(r *run) { r.stop(errLost) }, func(r *run, _ *signalbox.Task) { r.stop(errCancelled) })
	}
}

// putBackLostClaims returns claims whose answer was lost: the store made them although it
// reported an error, or nothing. A claim made just now has no run yet either, so a claim is
// returned only when seen twice. It is called from one goroutine.
func (x *Executor) putBackLostClaims() {
	inFlight, err := x.engine.Read().InFlight(x.claimCtx)
	if err != nil {
		return // the next round finds out
	}
	before := x.unclaimed
	x.unclaimed = map[string]int64{}
	for i := range inFlight {
		t := inFlight[i]
		if t.State != signalbox.Dispatching || x.poolOfAgent(t.Agent) == nil || x.runOf(t.ID) != nil {
			continue
		}
		x.unclaimed[t.ID] = t.Fence
		if before[t.ID] != t.Fence {
			continue
		}
		x.log.Warn("the answer to a claim of a tool task was lost: it goes back to its place", "queue_id", t.ID, "fence", t.Fence)
		if _, err := x.engine.Unsent(x.claimCtx, t, "the answer to its claim was lost"); err != nil {
			x.log.Error("a tool task could not be put back, trying again", "queue_id", t.ID, "error", err)
		}
	}
}
