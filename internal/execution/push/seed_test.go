package push_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/api"
	"github.com/signalbox-ai/signalbox/internal/engine"
	. "github.com/signalbox-ai/signalbox/internal/execution/push/agenttest"
)

// TestQueueSubmitAndDispatch is the seed's integration test of this name: a task that is submitted while the
// only agent is busy waits, and runs when the agent is idle.
func TestQueueSubmitAndDispatch(t *testing.T) {
	h := newFixture(t)
	a := h.agent(Options{Plain: true})
	blocking := a.RunForeign("blocking task")
	h.start()
	h.await("the agent is seen to be busy", func() bool { return h.live("fake").Held })
	id := h.submit(engine.NewTask{Prompt: "test task"})
	if got := h.task(id); got.State != signalbox.Pending {
		t.Fatalf("the task is %s beside a busy agent", got.State)
	}
	a.Finish(blocking, End{})
	got := h.untilState(id, signalbox.Working)
	if got.TaskID == "" || got.AgentURL != a.URL() || got.DispatchedAt.IsZero() {
		t.Errorf("a working task lacks task_id, agent_url or dispatched_at: %+v", got)
	}
	if n := len(a.Requests(Offer)); n != 1 {
		t.Errorf("the agent was offered the task %d times, want once, when it was idle", n)
	}
}

// The rows of the seed's table "Dispatch Failures".

func TestDispatchFailureAgentReturns409RequeuesAtBack(t *testing.T) {
	for name, current := range map[string]*api.AgentCurrentTask{"with current_task": {ID: "task-other"}, "without": nil} {
		t.Run(name, func(t *testing.T) {
			h := newFixture(t)
			a := h.agent(Options{})
			a.Script(Offer, Busy(current))
			first := h.submit(engine.NewTask{Prompt: "first"})
			second := h.submit(engine.NewTask{Prompt: "second"})
			h.start()
			if e := a.AwaitStart(1); e.QueueID != second {
				t.Errorf("the task that met a busy agent did not go to the back")
			}
			a.Finish(second, End{})
			a.AwaitStart(2)
			a.Finish(first, End{})
			if got := h.ends(first, signalbox.ReasonCompleted); got.Attempts != 0 {
				t.Errorf("a 409 cost %d attempts", got.Attempts)
			}
		})
	}
}

func TestDispatchFailureAgentUnreachableRequeuesAndCountsAttempt(t *testing.T) {
	h := newFixture(t, fast, freshConnections)
	a := h.agent(Options{Auto: true})
	h.start()
	h.untilUp("fake")
	a.Down()
	id := h.submit(engine.NewTask{})
	h.until(id, "sent back with an attempt", func(t signalbox.Task) bool { return t.State == signalbox.Pending && t.Attempts == 1 })
	a.Up()
	if got := h.ends(id, signalbox.ReasonCompleted); got.Attempts != 1 {
		t.Errorf("%d attempts, want 1", got.Attempts)
	}
}

func TestDispatchFailureAgentReturns4xxFailsTask(t *testing.T) {
	for _, status := range []int{400, 403, 404, 405, 410, 413, 415, 422, 429} {
		t.Run(http.StatusText(status), func(t *testing.T) {
			h := newFixture(t)
			a := h.agent(Options{})
			a.Script(Offer, Say(status, api.AgentRefusal{Error: "validation_error", Message: "the model is unknown"}))
			id := h.submit(engine.NewTask{})
			h.start()
			got := h.ends(id, signalbox.ReasonRejected)
			if !strings.Contains(got.Message, "the model is unknown") || got.State != signalbox.Failed {
				t.Errorf("it ended %s with %q", got.State, got.Message)
			}
			if n := len(a.Requests(Offer)); n != 1 {
				t.Errorf("a refused request was offered %d times", n)
			}
		})
	}
}

func TestDispatchFailureAgentReturns5xxRequeuesAndCountsAttempt(t *testing.T) {
	t.Parallel()
	for _, status := range []int{500, 502, 503, 504} {
		t.Run(http.StatusText(status), func(t *testing.T) {
			h := newFixture(t, fast)
			a := h.agent(Options{Auto: true})
			a.Script(Offer, Say(status, api.AgentRefusal{Error: "internal_error", Message: "disk full"}))
			id := h.submit(engine.NewTask{})
			h.start()
			if got := h.ends(id, signalbox.ReasonCompleted); got.Attempts != 1 || !strings.Contains(got.LastError, "disk full") {
				t.Errorf("%d attempts, last error %q", got.Attempts, got.LastError)
			}
		})
	}
}

func TestDispatchFailureMaxAttemptsFailsTask(t *testing.T) {
	h := newFixture(t, fast)
	a, b := h.agent(Options{Name: "a"}), h.agent(Options{Name: "b"}) // a single agent would be closed by its third failure in a row
	for _, g := range []*Agent{a, b} {
		g.Script(Offer, Say(500, nil), Say(502, nil), Say(503, nil))
	}
	h.start()
	h.untilUp("a")
	h.untilUp("b")
	id := h.submit(engine.NewTask{})
	got := h.ends(id, signalbox.ReasonDispatchFailed)
	if got.Attempts != 3 || !strings.Contains(got.Message, "3 of 3") {
		t.Errorf("%d attempts, %q", got.Attempts, got.Message)
	}
	if n, m := len(a.Requests(Offer)), len(b.Requests(Offer)); n+m != 3 || n == 0 || m == 0 {
		t.Errorf("offered %d and %d times, want 3 in all, at both", n, m)
	}
}

// The rows of the seed's table "Recovery Scenarios".

func TestRecoveryDirectorRestartRechecksDispatchedTasks(t *testing.T) {
	h := newFixture(t)
	a := h.agent(Options{})
	running := h.submit(engine.NewTask{Prompt: "running"})
	h.start()
	h.untilState(running, signalbox.Working)
	waiting := h.submit(engine.NewTask{Prompt: "waiting"})
	h.restart()
	a.Finish(running, End{Output: "the answer"})
	h.ends(running, signalbox.ReasonCompleted)
	h.untilState(waiting, signalbox.Working)
	if n := len(a.Executions()); n != 2 {
		t.Errorf("%d executions of two tasks", n)
	}
}

func TestRecoveryAgentRestartMidTaskFailsTask(t *testing.T) {
	for name, memory := range map[string]bool{"it remembers": true, "it forgot": false} {
		t.Run(name, func(t *testing.T) {
			h := newFixture(t)
			a := h.agent(Options{})
			id := h.submit(engine.NewTask{})
			h.start()
			h.untilState(id, signalbox.Working)
			a.Restart(memory)
			want := signalbox.ReasonLost
			if memory {
				want = signalbox.ReasonInterrupted
			}
			h.ends(id, want)
			next := h.submit(engine.NewTask{})
			h.untilState(next, signalbox.Working)
		})
	}
}

func TestRecoveryNetworkPartitionRequeuesTask(t *testing.T) {
	h := newFixture(t, fast, shortTimeouts)
	a := h.agent(Options{Auto: true})
	a.Script(Offer, Hang())
	id := h.submit(engine.NewTask{})
	h.start()
	got := h.ends(id, signalbox.ReasonCompleted)
	if got.Attempts != 1 || !strings.Contains(got.LastError, "timeout") {
		t.Errorf("%d attempts, last error %q", got.Attempts, got.LastError)
	}
	if n := len(a.Executions()); n != 1 {
		t.Errorf("%d executions", n)
	}
}
