package execution_test

import (
	"context"
	"errors"
	"log/slog"
	"testing"
	"time"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/internal/execution"
)

func TestLimits(t *testing.T) {
	const minute = time.Minute
	stall := execution.Limits{Stall: 5 * minute, Grace: 30 * time.Second, TTL: 10 * minute}
	progress := execution.Limits{Stall: signalbox.StallByProgress, Grace: 30 * time.Second, TTL: 10 * minute}
	for name, c := range map[string]struct {
		limits  execution.Limits
		timeout time.Duration
		pace    execution.Pace
		reason  signalbox.Reason
		message string
	}{
		"none":                      {limits: execution.Limits{TTL: minute}, pace: execution.Pace{Ran: 100 * time.Hour, Still: 100 * time.Hour}},
		"within its timeout":        {limits: stall, timeout: minute, pace: execution.Pace{Ran: 89 * time.Second}},
		"over its timeout":          {stall, minute, execution.Pace{Ran: 90 * time.Second}, signalbox.ReasonRunTimeout, "still running 30s after its run timeout of 60s (timeout_seconds): the agent did not keep it"},
		"the timeout goes first":    {stall, minute, execution.Pace{Ran: 10 * minute, Still: 10 * minute}, signalbox.ReasonRunTimeout, "still running 30s after its run timeout of 60s (timeout_seconds): the agent did not keep it"},
		"at a standstill":           {stall, 0, execution.Pace{Still: 5 * minute}, signalbox.ReasonStalled, "no output for 5m0s: the stall limit (stall_limit) fired"},
		"by progress, told":         {progress, 0, execution.Pace{Still: 10 * minute, Reported: true}, signalbox.ReasonStalled, "no output for 10m0s: its agent answers and tells of no progress (execution_ttl; stall_limit sets another limit)"},
		"by progress, not told":     {limits: progress, pace: execution.Pace{Still: 59 * minute}},
		"by progress, not told, 1h": {progress, 0, execution.Pace{Still: 60 * minute}, signalbox.ReasonStalled, "no output for 1h0m0s: its agent reports no progress, and the task has no timeout_seconds (stall_limit sets another limit)"},
		"by progress, a timeout":    {limits: progress, timeout: 3 * time.Hour, pace: execution.Pace{Ran: 2 * time.Hour, Still: 2 * time.Hour}},
	} {
		t.Run(name, func(t *testing.T) {
			reason, message := c.limits.Over(c.timeout, c.pace)
			if reason != c.reason || message != c.message {
				t.Errorf("%q, %q; want %q, %q", reason, message, c.reason, c.message)
			}
		})
	}
}

// stopper is the part of an engine that Enforce uses.
type stopper struct {
	inCall        bool
	callErr, stop error
	stopped       int
}

func (s *stopper) InCall(context.Context, string) (bool, error) { return s.inCall, s.callErr }
func (s *stopper) Stop(_ context.Context, t signalbox.Task, _ signalbox.Reason, _ string) (signalbox.Task, error) {
	s.stopped++
	return t, s.stop
}

func TestEnforce(t *testing.T) {
	down := signalbox.Errorf(signalbox.CodeStoreFailed, "no such page")
	for name, c := range map[string]struct {
		reason signalbox.Reason
		with   stopper
		want   execution.EnforceResult
		stops  int
	}{
		"stalled":                     {signalbox.ReasonStalled, stopper{}, execution.Stopped, 1},
		"stalled, in a call":          {signalbox.ReasonStalled, stopper{inCall: true}, execution.InCall, 0},
		"stalled, calls unknown":      {signalbox.ReasonStalled, stopper{callErr: errors.New("no such page")}, execution.Postponed, 0},
		"over its timeout, in a call": {signalbox.ReasonRunTimeout, stopper{inCall: true}, execution.Stopped, 1},
		"decided by others":           {signalbox.ReasonRunTimeout, stopper{stop: signalbox.Errorf(signalbox.CodeAlreadyEnded, "it has ended")}, execution.Stopped, 1},
		"not stored":                  {signalbox.ReasonRunTimeout, stopper{stop: down}, execution.Postponed, 1},
	} {
		t.Run(name, func(t *testing.T) {
			s := c.with
			got := execution.Enforce(t.Context(), &s, slog.New(slog.DiscardHandler), execution.StopOrder{Reason: c.reason})
			if got != c.want || s.stopped != c.stops {
				t.Errorf("%v after %d stops, want %v after %d", got, s.stopped, c.want, c.stops)
			}
		})
	}
}
