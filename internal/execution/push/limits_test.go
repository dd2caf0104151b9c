package push_test

import (
	"strings"
	"testing"
	"time"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/api"
	"github.com/signalbox-ai/signalbox/internal/engine"
	. "github.com/signalbox-ai/signalbox/internal/execution/push/agenttest"
)

// stallLimit stops runs that print nothing for that long.
func stallLimit(d time.Duration) setting {
	return func(h *fixture, _ *engine.Options) { h.opts.StallLimit = d }
}

// beats sends a heartbeat of an agent that runs this task, which last printed something at that time (zero:
// not reported).
func (h *fixture) beats(a *Agent, id string, printed time.Time) {
	h.t.Helper()
	for _, e := range a.Executions() {
		if e.QueueID != id || e.End != 0 {
			continue
		}
		c := api.AgentCurrentTask{ID: e.TaskID, QueueID: id, Fence: e.Fence, Slot: e.Slot, StartedAt: e.Begun}
		if !printed.IsZero() {
			c.LastProgressAt = &printed
		}
		h.d.Heartbeat("fake", beat("working", c))
	}
}

// A run that its agent lets exceed its timeout is stopped by the director, and the message names the limit
// with its value.
func TestRunBeyondTimeoutIsStopped(t *testing.T) {
	for _, plain := range []bool{false, true} {
		h := newFixture(t)
		a := h.agent(Options{Plain: plain})
		h.start()
		id := h.submit(engine.NewTask{TimeoutSeconds: 60})
		h.untilState(id, signalbox.Working)
		h.clock.silenceFor(89 * time.Second) // less than the timeout and the grace of 30 s
		h.beats(a, id, time.Time{})
		asked := len(a.Requests(""))
		a.Await("it is followed", func() bool { return len(a.Requests("")) > asked || !plain })
		if got := h.task(id); got.State != signalbox.Working {
			t.Fatalf("it is %s before its time is over", got.State)
		}
		h.clock.silenceFor(2 * time.Second)
		got := h.ends(id, signalbox.ReasonRunTimeout)
		if want := "still running 30s after its run timeout of 60s (timeout_seconds): the agent did not keep it"; got.Message != want || got.State != signalbox.Timeout {
			t.Errorf("it ended %s with %q", got.State, got.Message)
		}
		if e := a.Executions()[0]; e.State != "cancelled" {
			t.Errorf("the agent's run is %s", e.State)
		}
	}
}

// The run timeout counts from the start of the run, even under another director.
func TestRunTimeoutSurvivesRestart(t *testing.T) {
	h := newFixture(t)
	a := h.agent(Options{})
	h.start()
	id := h.submit(engine.NewTask{TimeoutSeconds: 60})
	h.untilState(id, signalbox.Working)
	h.stop()
	h.clock.jumpWall(80 * time.Second)
	h.clock.silenceFor(80 * time.Second)
	h.start()
	h.untilUp("fake")
	a.Print(id, "still at it\n")
	h.clock.silenceFor(11 * time.Second)
	h.ends(id, signalbox.ReasonRunTimeout)
}

// A jump of the wall clock stops no run.
func TestWallClockJumpFiresNoLimit(t *testing.T) {
	h := newFixture(t, stallLimit(time.Minute))
	a := h.agent(Options{})
	h.start()
	id := h.submit(engine.NewTask{TimeoutSeconds: 60})
	h.untilState(id, signalbox.Working)
	h.clock.jumpWall(24 * time.Hour)
	h.beats(a, id, h.clock.now())
	other := h.submit(engine.NewTask{WaitTimeout: time.Second}) // ended by the same round
	h.clock.jumpWall(2 * time.Second)
	h.ends(other, signalbox.ReasonWaitTimeout)
	if got := h.task(id); got.State != signalbox.Working {
		t.Errorf("it is %s: %s", got.State, got.Message)
	}
	a.Finish(id, End{})
	h.ends(id, signalbox.ReasonCompleted)
}

// There is no stall limit unless it is set, and output of the run, in whatever way it is reported, restarts
// its clock.
func TestStallLimit(t *testing.T) {
	for _, how := range []string{"log", "heartbeat", "answer of a plain agent"} {
		t.Run(how, func(t *testing.T) {
			h := newFixture(t, stallLimit(5*time.Minute))
			plain := how == "answer of a plain agent"
			a := h.agent(Options{Plain: plain, NoOutput: how == "heartbeat"})
			h.start()
			id := h.submit(engine.NewTask{})
			h.untilState(id, signalbox.Working)
			for range 3 {
				h.clock.silenceFor(4 * time.Minute)
				before := h.live("fake").LastProgress
				task := a.Executions()[0].TaskID
				switch how {
				case "heartbeat":
					h.beats(a, id, time.Now().Add(time.Hour)) // a fast clock does no harm
				default:
					a.Print(task, "news\n")
				}
				h.await("the progress is seen", func() bool { return h.live("fake").LastProgress.After(before) })
			}
			h.clock.silenceFor(5 * time.Minute)
			got := h.ends(id, signalbox.ReasonStalled)
			if want := "no output for 5m0s: the stall limit (stall_limit) fired"; got.Message != want || got.State != signalbox.Failed {
				t.Errorf("it ended %s with %q", got.State, got.Message)
			}
		})
	}
}

// A restart restarts the stall clock, unless the agent reports when the run last printed something.
func TestStallClockAfterRestart(t *testing.T) {
	for _, says := range []bool{true, false} {
		h := newFixture(t, stallLimit(5*time.Minute))
		a := h.agent(Options{NoOutput: true, NoLastOutput: true})
		h.start()
		id := h.submit(engine.NewTask{})
		began := h.untilState(id, signalbox.Working).StartedAt
		h.stop()
		h.clock.jumpWall(10 * time.Minute)
		h.start()
		h.untilUp("fake")
		printed := time.Time{}
		if says {
			printed = began.Add(time.Second)
		}
		h.beats(a, id, printed)
		if says {
			h.ends(id, signalbox.ReasonStalled)
			continue
		}
		h.clock.silenceFor(4 * time.Minute)
		if got := h.task(id); got.State != signalbox.Working {
			t.Errorf("it is %s: %s", got.State, got.Message)
		}
		h.clock.silenceFor(time.Minute)
		h.ends(id, signalbox.ReasonStalled)
	}
}

// If a limit is exceeded while the agent is unreachable, the task still ends with that reason when the lease
// is over.
func TestLimitFiresWhileAgentIsUnreachable(t *testing.T) {
	h := newFixture(t, shortTimeouts, func(h *fixture, _ *engine.Options) { h.opts.FollowWait = 50 * time.Millisecond })
	a := h.agent(Options{})
	h.start()
	id := h.submit(engine.NewTask{TimeoutSeconds: 60})
	h.untilState(id, signalbox.Working)
	a.Silence()
	h.clock.silenceFor(91 * time.Second)
	h.untilState(id, signalbox.Cancelling)
	h.silent(a)
	if got := h.ends(id, signalbox.ReasonRunTimeout); !strings.Contains(got.Message, "timeout_seconds") {
		t.Errorf("message %q", got.Message)
	}
}

// A stop that cannot be stored is retried.
func TestStopIsRetried(t *testing.T) {
	var f *failing
	h := newFixture(t, func(h *fixture, _ *engine.Options) { f = h.failing() })
	h.agent(Options{})
	h.start()
	id := h.submit(engine.NewTask{TimeoutSeconds: 60})
	h.untilState(id, signalbox.Working)
	f.down.Store(true)
	tries := f.tries.Load()
	h.clock.silenceFor(91 * time.Second)
	h.await("the stop fails", func() bool { return f.tries.Load() >= tries+2 })
	f.down.Store(false)
	h.ends(id, signalbox.ReasonRunTimeout)
}
