package local

import (
	"maps"
	"slices"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/internal/execution"
)

// compareRuns stops the runs of tasks that are to be cancelled, or are no
// longer in our hands, and of which nobody was told: another director did it
// and its word was left out, or the store lost what it had acknowledged.
func (x *Executor) compareRuns() {
	x.mu.Lock()
	runs := slices.Collect(maps.Values(x.runs)) // before the rows: what begins in between is not among them
	x.mu.Unlock()
	if len(runs) > 0 {
		execution.CompareRows(x.claimCtx, x.engine.Read(), runs, func(r *run) { r.stop(errLost) }, func(r *run, _ *signalbox.Task) { r.stop(errCancelled) })
	}
}

// putBackLostClaims gives back the slots of claims of which nobody heard the answer:
// the store made them, and said that it had not, or nothing. A claim that was
// made a moment ago is seen without its run as well, so it takes two looks. It is
// called from one goroutine.
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
