package push_test

import (
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/internal/engine"
	. "github.com/signalbox-ai/signalbox/internal/execution/push/agenttest"
)

var byProgress = stallLimit(signalbox.StallByProgress)

// staysWorking fails unless the task still runs after the limits were checked.
func (h *fixture) staysWorking(id string) {
	h.t.Helper()
	over := h.submit(engine.NewTask{Agent: "fake", WaitTimeout: time.Second}) // ended by the same round
	h.clock.jumpWall(2 * time.Second)
	h.ends(over, signalbox.ReasonWaitTimeout)
	if got := h.task(id); got.State != signalbox.Working {
		h.t.Fatalf("it is %s: %s", got.State, got.Message)
	}
}

// TestWedgedRunOfResponsiveAgent: if an agent reports progress, execution_ttl bounds the time without any;
// otherwise an hour does, or the task's timeout.
func TestWedgedRunOfResponsiveAgent(t *testing.T) {
	const hour, second = time.Hour, time.Second
	for name, c := range map[string]struct {
		agent Options
		task  engine.NewTask
		limit time.Duration
		says  string
	}{
		"it reports progress":                   {Options{}, engine.NewTask{TimeoutSeconds: 7200}, ttl, "its agent answers and tells of no progress (execution_ttl"},
		"it is ours, of an earlier release":     {Options{NoLastOutput: true}, engine.NewTask{}, hour, "reports no progress"},
		"plain":                                 {Options{Plain: true}, engine.NewTask{}, hour, "reports no progress"},
		"plain and deaf":                        {Options{Plain: true, IgnoresCancel: true}, engine.NewTask{}, hour, "reports no progress"},
		"it reports progress and does not stop": {Options{IgnoresCancel: true}, engine.NewTask{}, ttl, "tells of no progress"},
	} {
		t.Run(name, func(t *testing.T) {
			h := newFixture(t, byProgress)
			a := h.agent(c.agent)
			h.start()
			h.untilUp("fake")
			id := h.submit(c.task)
			h.untilState(id, signalbox.Working)
			h.clock.silenceFor(c.limit - second)
			h.staysWorking(id)
			h.clock.silenceFor(second)
			if c.agent.IgnoresCancel {
				h.untilState(id, signalbox.Cancelling)
				h.await("it was told to stop", func() bool { return len(a.Requests(Cancel)) > 0 })
				h.await("the grace is over", func() bool {
					h.clock.silenceFor(second)
					return h.task(id).State.Terminal()
				})
			}
			if got := h.ends(id, signalbox.ReasonStalled); got.State != signalbox.Failed || !strings.Contains(got.Message, c.says) {
				t.Errorf("it ended %s with %q", got.State, got.Message)
			}
			if c.agent.Plain && c.agent.IgnoresCancel {
				h.keepsTheSlotUntilIdle(a, id)
			}
		})
	}
}

// keepsTheSlotUntilIdle fails unless the slot of a run that its agent does not stop goes to another task when
// the agent has ended the run, and not before.
func (h *fixture) keepsTheSlotUntilIdle(a *Agent, id string) {
	h.t.Helper()
	if slots, err := h.store.Slots(h.t.Context()); err != nil || len(slots) != 1 || !slots[0].Withheld {
		h.t.Fatalf("the slot is not withheld: %+v, %v", slots, err)
	}
	next := h.submit(engine.NewTask{Prompt: "next"})
	if n := len(a.Executions()); n != 1 || h.task(next).State != signalbox.Pending {
		h.t.Fatalf("%d executions, the next task is %s", n, h.task(next).State)
	}
	a.Finish(a.Executions()[0].TaskID, End{})
	h.untilState(next, signalbox.Working)
	if got := h.task(id); got.Reason != signalbox.ReasonStalled {
		h.t.Errorf("it ended %s", got.Reason)
	}
}

// TestActiveLongRunIsNotWedged: output restarts the clock of the limit, any number of times; a timeout of its
// own replaces the hour.
func TestActiveLongRunIsNotWedged(t *testing.T) {
	h := newFixture(t, byProgress)
	a := h.agent(Options{})
	h.start()
	h.untilUp("fake")
	id := h.submit(engine.NewTask{})
	h.untilState(id, signalbox.Working)
	for range 5 {
		h.clock.silenceFor(ttl - time.Second)
		before := h.live("fake").LastProgress
		a.Print(a.Executions()[0].TaskID, "still at it\n")
		h.await("it is heard", func() bool { return h.live("fake").LastProgress.After(before) })
		h.staysWorking(id)
		time.Sleep(2 * time.Millisecond) // so that the next progress has another time
	}
	a.Finish(a.Executions()[0].TaskID, End{})
	h.ends(id, signalbox.ReasonCompleted)
}

func TestTimeoutReplacesStallLimit(t *testing.T) {
	h := newFixture(t, byProgress)
	h.agent(Options{Plain: true})
	h.start()
	id := h.submit(engine.NewTask{TimeoutSeconds: 7200})
	h.untilState(id, signalbox.Working)
	h.clock.silenceFor(2 * time.Hour)
	h.staysWorking(id)
	h.clock.silenceFor(time.Minute)
	h.ends(id, signalbox.ReasonRunTimeout)
}

// TestRunWaitingForToolCallIsNotWedged: neither for a tool, nor for another agent.
func TestRunWaitingForToolCallIsNotWedged(t *testing.T) {
	h := newFixture(t, byProgress)
	var inCall atomic.Value
	inCall.Store("")
	h.engine.SetToolCalls(func(id string) bool { return inCall.Load() == id }, func(string) []signalbox.ToolCall { return nil })
	h.agent(Options{})
	h.agent(Options{Name: "other"})
	h.start()
	h.untilUp("fake")
	h.untilUp("other")
	id := h.submit(engine.NewTask{Agent: "fake"})
	h.untilState(id, signalbox.Working)
	inCall.Store(id)
	h.clock.silenceFor(2 * ttl)
	h.staysWorking(id)
	inCall.Store("")
	child := h.submit(engine.NewTask{Agent: "other", Waits: true, NotBefore: h.engine.Now().Add(24 * time.Hour), CallerID: id, By: signalbox.Principal{
		Kind: signalbox.PrincipalAgent, ID: "fake", Scopes: []signalbox.Scope{signalbox.ScopeSubmit, signalbox.ScopeAgent},
	}})
	h.clock.silenceFor(2 * ttl)
	h.staysWorking(id)
	if _, err := h.engine.Cancel(t.Context(), child, "test"); err != nil {
		t.Fatal(err)
	}
	h.clock.silenceFor(ttl)
	h.ends(id, signalbox.ReasonStalled)
}

// If an agent is silent its run is lost, as on_lost says, and not stalled: whether it progresses is unknown.
func TestRunOfSilentAgentIsLostNotWedged(t *testing.T) {
	h := newFixture(t, byProgress, shortTimeouts)
	a := h.agent(Options{})
	h.start()
	id := h.submit(engine.NewTask{})
	h.untilState(id, signalbox.Working)
	h.silent(a)
	h.ends(id, signalbox.ReasonLost)
}
