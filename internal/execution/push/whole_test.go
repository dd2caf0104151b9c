package push_test

import (
	"net/http"
	"testing"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/api"
	"github.com/signalbox-ai/signalbox/internal/engine"
	. "github.com/signalbox-ai/signalbox/internal/execution/push/agenttest"
)

// The whole log of a task is read from its agent, during the run and afterwards, until the agent has
// forgotten it, is gone, or is removed.
func TestTheWholeLogIsReadFromTheAgent(t *testing.T) {
	t.Parallel()
	h := newFixture(t, shortTimeouts)
	a := h.agent(Options{Name: "a"})
	h.start()
	id := h.submit(engine.NewTask{})
	run := a.AwaitStart(1)
	working := h.untilState(id, signalbox.Working)
	whole := func(after int64, want string, done bool) {
		t.Helper()
		got, err := h.d.WholeLog(t.Context(), &working, after)
		if err != nil || got.Text != want || got.Seq != after || got.Next != after+int64(len(want)) || got.Done != done {
			t.Errorf("from %d: %+v, %v", after, got, err)
		}
	}
	fails := func(task signalbox.Task, code signalbox.Code) {
		t.Helper()
		if got, err := h.d.WholeLog(t.Context(), &task, 0); signalbox.CodeOf(err) != code {
			t.Errorf("%+v, %v, want %s", got, err, code)
		}
	}
	a.Print(run.TaskID, "one\ntwo\n")
	whole(0, "one\ntwo\n", false)
	whole(8, "", false)
	a.Finish(run.TaskID, End{})
	h.untilState(id, signalbox.Completed)
	whole(4, "two\n", true)
	a.Always(Output, func(x *Exchange) { x.Answer(http.StatusOK, api.AgentOutput{Seq: 5, Text: "x", Next: 2}) })
	fails(working, signalbox.CodeAgentDown)
	a.ClearScripts()
	forgotten := working
	forgotten.TaskID = "task-of-another-day"
	fails(forgotten, signalbox.CodeNotFound)
	removed := working
	removed.Agent = "removed"
	fails(removed, signalbox.CodeAgentDown)
	a.Down()
	fails(working, signalbox.CodeAgentDown)
}
