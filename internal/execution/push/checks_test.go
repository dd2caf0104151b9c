package push_test

import (
	"reflect"
	"strings"
	"testing"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/api"
	"github.com/signalbox-ai/signalbox/internal/engine"
	. "github.com/signalbox-ai/signalbox/internal/execution/push/agenttest"
)

// Checks are sent with the task to its agent, and their results are stored, within limits.
func TestCheckResultsAreStored(t *testing.T) {
	t.Parallel()
	h := newFixture(t, shortTimeouts)
	a := h.agent(Options{Name: "a"})
	h.start()
	three, code := 3, 1
	id := h.submit(engine.NewTask{Checking: signalbox.Checking{
		Checks: []signalbox.Check{{Name: "test", Run: "make test", TimeoutSeconds: 9}, {Name: "lint", Run: "make lint"}}, Retries: &three,
	}})
	x := a.AwaitStart(1)
	if want := []api.TaskCheck{{Name: "test", Run: "make test", TimeoutSeconds: 9}, {Name: "lint", Run: "make lint"}}; !reflect.DeepEqual(x.Checks, want) || x.Retries == nil || *x.Retries != 3 {
		t.Errorf("offered %+v, %v", x.Checks, x.Retries)
	}
	long := strings.Repeat("x", 20_000) + "\nthe end\x1b[2J\n"
	a.Finish(x.TaskID, End{
		State: "failed", Output: "I am done", Error: &api.AgentError{Type: "checks", Message: "test (exit status 1)"},
		Checks: &api.AgentChecks{State: "failed", Rounds: 4, Message: strings.Repeat("m", 5000), Results: []api.CheckResult{
			{Name: "test\x07", State: "failed", ExitCode: &code, Seconds: -1, Output: long}, {Name: "lint", State: "splendid"},
		}},
	})
	task := h.untilState(id, signalbox.Failed)
	r, err := h.engine.Read().Result(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	c := r.Checked
	if task.Reason != signalbox.ReasonChecks || task.Message != "test (exit status 1)" || r.Output != "I am done" || c == nil || c.State != signalbox.CheckFailed || c.Rounds != 4 || len(c.Message) != 1000 || len(c.Results) != 2 {
		t.Fatalf("%s %q %+v", task.Reason, task.Message, c)
	}
	if one := c.Results[0]; one.Name != "test\uFFFD" || one.Seconds != 0 || *one.ExitCode != 1 || len(one.Output) > 8<<10 || !strings.HasSuffix(one.Output, "\nthe end\uFFFD[2J\n") {
		t.Errorf("%q, %d bytes: %q", one.Name, len(one.Output), one.Output[max(0, len(one.Output)-30):])
	}
	if c.Results[1].State != signalbox.CheckUnavailable {
		t.Errorf("%+v", c.Results[1])
	}
}

// A task whose checks failed is not completed, whatever else its agent reports.
func TestFailedChecksAreNoSuccess(t *testing.T) {
	t.Parallel()
	h := newFixture(t, shortTimeouts)
	a := h.agent(Options{Name: "a"})
	h.start()
	id := h.submit(engine.NewTask{})
	a.Finish(a.AwaitStart(1).TaskID, End{State: "completed", Error: &api.AgentError{Type: "checks", Message: "lint (exit status 1)"}})
	if task := h.untilState(id, signalbox.Failed); task.Reason != signalbox.ReasonChecks {
		t.Errorf("%s %s", task.Reason, task.Message)
	}
}
