package execution

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"github.com/signalbox-ai/signalbox"
)

// Three limits end an execution, and the message of its end names the one that did: silence
// of the agent (execution_ttl), the run timeout (timeout_seconds) and no progress
// (stall_limit). The agent enforces the run timeout; the director does so if the agent does
// not. All clocks are monotonic.
//
// A run makes progress when it prints something, or its agent says so (last_progress_at,
// silent_ms). An agent that reports all progress of its runs says so ("progress": true in
// /status; pull agents always do). A run that waits for this director, such as for a place
// in a tool queue or the answer of another agent, is not stalled.

// unreportedStall bounds a run without a timeout at an agent that reports no progress.
const unreportedStall = time.Hour

// Limits bound a run.
type Limits struct {
	Stall time.Duration // without progress; 0: none, or signalbox.StallByProgress
	Grace time.Duration // beyond the run timeout
	TTL   time.Duration // the slot lease
}

// Pace is a run's progress so far.
type Pace struct {
	Ran      time.Duration
	Still    time.Duration // time without progress
	Reported bool          // its agent reports all progress
}

// Over returns the limit that a run has exceeded; "" if none.
func (l Limits) Over(timeout time.Duration, p Pace) (reason signalbox.Reason, message string) {
	if timeout > 0 && p.Ran >= timeout+l.Grace {
		return signalbox.ReasonRunTimeout, fmt.Sprintf("still running %s after its run timeout of %s (timeout_seconds): the agent did not keep it",
			inSeconds(l.Grace), inSeconds(timeout))
	}
	if message = l.stalled(timeout, p); message != "" {
		return signalbox.ReasonStalled, message
	}
	return "", ""
}

// stalled says why a run counts as stalled; "" if it does not.
func (l Limits) stalled(timeout time.Duration, p Pace) string {
	limit, why := l.Stall, "the stall limit (stall_limit) fired"
	switch {
	case limit != signalbox.StallByProgress:
	case p.Reported:
		limit, why = l.TTL, "its agent answers and tells of no progress (execution_ttl; stall_limit sets another limit)"
	case timeout == 0:
		limit, why = unreportedStall, "its agent reports no progress, and the task has no timeout_seconds (stall_limit sets another limit)"
	}
	if limit <= 0 || p.Still < limit {
		return ""
	}
	return fmt.Sprintf("no output for %s: %s", limit, why)
}

// inSeconds formats a duration like the API's timeouts.
func inSeconds(d time.Duration) string { return fmt.Sprintf("%gs", d.Seconds()) }

// StopOrder is a run to be stopped because it exceeded a limit.
type StopOrder struct {
	Task    signalbox.Task
	Reason  signalbox.Reason
	Message string
}

// InOrder sorts orders by fence.
func InOrder(orders []StopOrder) []StopOrder {
	slices.SortFunc(orders, func(a, b StopOrder) int { return cmp.Compare(a.Task.Fence, b.Task.Fence) })
	return orders
}

// EnforceResult is the result of Enforce.
type EnforceResult int

// What becomes of a StopOrder.
const (
	// Results of Enforce.
	Stopped   EnforceResult = iota
	InCall                  // the run waits for this director, so it is not stalled
	Postponed               // the store failed: try again
)

// Stopper is the part of the engine that Enforce needs.
type Stopper interface {
	InCall(ctx context.Context, id string) (bool, error)
	Stop(ctx context.Context, t signalbox.Task, reason signalbox.Reason, message string) (signalbox.Task, error)
}

// Enforce stops a run that exceeded a limit.
func Enforce(ctx context.Context, e Stopper, log *slog.Logger, o StopOrder) EnforceResult {
	if o.Reason == signalbox.ReasonStalled {
		waits, err := e.InCall(ctx, o.Task.ID)
		switch {
		case err != nil:
			logError(ctx, log, "calls of a run without progress not read, trying again", o.Task.ID, err)
			return Postponed
		case waits:
			return InCall
		}
	}
	_, err := e.Stop(ctx, o.Task, o.Reason, o.Message)
	if UnlessDecided(err) != nil {
		logError(ctx, log, "run over its limit not stopped, trying again", o.Task.ID, err)
		return Postponed
	}
	return Stopped
}

func logError(ctx context.Context, log *slog.Logger, what, id string, err error) {
	if ctx.Err() == nil {
		log.Error(what, "queue_id", id, "error", err)
	}
}
