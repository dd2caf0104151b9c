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

// Three limits end an execution, and the message of its end always says which
// one did: silence of the agent (execution_ttl), the run timeout
// (timeout_seconds) and no progress (stall_limit). The run timeout is the agent's to
// keep; it is stopped from here where the agent does not. All clocks are monotonic.
//
// A run makes progress when it prints something, or its agent says so
// (last_progress_at, silent_ms). An agent that tells of all the progress its runs
// make says so ("progress": true in /status; whoever pulls does). While a run waits
// for what it asked this director for, such as a place in a tool queue or the answer
// of another agent, it does not stand still.

// unreportedStall bounds a run without a timeout at an agent that reports no progress.
const unreportedStall = time.Hour

// Limits end the runs that go on for too long.
type Limits struct {
	Stall time.Duration // without progress; 0: none, or signalbox.StallByProgress
	Grace time.Duration // beyond the run timeout
	TTL   time.Duration // the slot lease
}

// Pace is how a run has fared until now.
type Pace struct {
	Ran      time.Duration
	Still    time.Duration // without progress
	Reported bool          // its agent tells of all progress
}

// Over says which limit a run has reached; "" where none.
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

// stalled says why a run has stood still for too long, "" where it has not.
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

// inSeconds is a duration as timeouts are given.
func inSeconds(d time.Duration) string { return fmt.Sprintf("%gs", d.Seconds()) }

// StopOrder is a run that has reached a limit.
type StopOrder struct {
	Task    signalbox.Task
	Reason  signalbox.Reason
	Message string
}

// InOrder sorts the orders by the claims of their runs.
func InOrder(orders []StopOrder) []StopOrder {
	slices.SortFunc(orders, func(a, b StopOrder) int { return cmp.Compare(a.Task.Fence, b.Task.Fence) })
	return orders
}

// Enforced says what became of a StopOrder.
type EnforceResult int

// What becomes of a StopOrder.
const (
	Stopped   EnforceResult = iota
	InCall                  // the run waits for what it asked this director for: it does not stand still
	Postponed               // the store could not say, or take it: it is tried again
)

// Stopper is what Enforce needs of the engine.
type Stopper interface {
	InCall(ctx context.Context, id string) (bool, error)
	Stop(ctx context.Context, t signalbox.Task, reason signalbox.Reason, message string) (signalbox.Task, error)
}

// Enforce stops a run that has reached a limit.
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
