package pull_test

import (
	"strings"
	"testing"
	"time"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/api"
	"github.com/signalbox-ai/signalbox/internal/engine"
)

// refuses claims a task and refuses it.
func (a *puller) refuses(status int, code string) {
	a.h.t.Helper()
	run := a.begins()
	a.c.Runs = nil
	_, err := a.report(run.QueueID, api.PullReport{Fence: run.Fence, Refused: &api.PullRefused{Status: status, Error: code, Message: "it broke"}})
	a.h.must(err)
}

// given sends a claim without waiting, and reports whether there was a task.
func (a *puller) given() bool {
	a.h.t.Helper()
	got := a.claim(time.Millisecond)
	if got.Task != nil {
		a.has(got.Task)
	}
	return got.Task != nil
}

func (h *fixture) live(name string) engine.LiveAgent {
	h.t.Helper()
	live, ok := h.lanes.LiveAgent(name)
	if !ok {
		h.t.Fatalf("no agent %s", name)
	}
	return live
}

// A failing agent gets nothing for a while, then one task as the probe.
func TestFailingAgentGetsFewerTasks(t *testing.T) {
	h := newFixture(t, brisk)
	a := h.agent("far", 2)
	var ids []string
	for range 5 {
		ids = append(ids, h.submit(engine.NewTask{}))
	}
	a.refuses(507, "")
	closed := h.live("far")
	if closed.Closed == nil || !closed.Held || !closed.BackedOff || !strings.Contains(closed.Message, "it broke") {
		t.Errorf("after the failure: %+v, %s", closed.Closed, closed.Message)
	}
	if a.given() {
		t.Fatal("it is given a task in its pause")
	}
	waiting := a.claiming(long)
	h.pass(2 * time.Second)
	got := <-waiting // it is woken when the pause is over
	if got.Task == nil {
		t.Fatalf("%+v", got)
	}
	a.has(got.Task)
	if a.given() {
		t.Fatal("it is given a second task before the first has decided")
	}
	a.accepts(got.Task)
	if live := h.live("far"); live.Closed != nil || live.Held {
		t.Errorf("after it took one: %+v", live)
	}
	if !a.given() {
		t.Error("well again, it is given one task at a time")
	}
	for _, id := range ids {
		if row := h.task(id); row.Attempts != 0 {
			t.Errorf("%s paid %d attempts", id, row.Attempts)
		}
	}
}

// If the probe's task comes back without a result that says something about the agent, another task becomes
// the probe.
func TestUndecidedProbeIsRepeated(t *testing.T) {
	h := newFixture(t, brisk)
	a := h.agent("far", 1)
	for range 3 { // the refused one waits for longer than the pause
		h.submit(engine.NewTask{})
	}
	a.refuses(507, "")
	h.pass(2 * time.Second)
	trial := a.begins()
	_, err := h.engine.Cancel(t.Context(), trial.QueueID, "web")
	h.must(err)
	a.c.Runs = nil
	_, err = a.report(trial.QueueID, api.PullReport{Fence: trial.Fence, Unknown: true})
	h.must(err)
	if next := a.begins(); next.QueueID == trial.QueueID {
		t.Error("a cancelled task is given again")
	}
}

// An agent that asks for tasks and refuses each is backed off; an agent that also works is not.
func TestRefusingAgentIsBackedOff(t *testing.T) {
	h := newFixture(t, noTick)
	a := h.agent("far", 1)
	id := h.submit(engine.NewTask{})
	a.refuses(409, "agent_busy")
	h.pass(time.Minute)
	a.refuses(409, "agent_busy")
	h.pass(time.Minute)
	if a.given() {
		t.Error("it is given a task at once after two that it turned away")
	}
	if live := h.live("far"); !live.BackedOff || live.Closed != nil || !strings.Contains(live.Message, "turns tasks away") {
		t.Errorf("%+v", live)
	}
	if row := h.task(id); row.Attempts != 0 || row.State != signalbox.Pending {
		t.Errorf("%+v", row)
	}
}

// An agent that accepts a task between two refusals works, even if the accepted one is cancelled before the
// agent reports it, or its first report is its last.
func TestAgentThatWorksIsNotBackedOff(t *testing.T) {
	for name, takesUp := range map[string]func(*puller, *api.AgentTask){
		"accepts": func(a *puller, run *api.AgentTask) {
			a.accepts(run)
			a.completes(run, "done")
		},
		"accepts one that is being cancelled": func(a *puller, run *api.AgentTask) {
			_, err := a.h.engine.Cancel(a.h.t.Context(), run.QueueID, "web")
			a.h.must(err)
			a.accepts(run)
			a.h.reaches(run.QueueID, signalbox.Cancelling)
			a.completes(run, "done")
		},
		"ends at once": func(a *puller, run *api.AgentTask) { a.completes(run, "done") },
	} {
		t.Run(name, func(t *testing.T) {
			h := newFixture(t, noTick)
			a := h.agent("far", 1)
			for range 3 {
				h.submit(engine.NewTask{})
			}
			a.refuses(409, "agent_busy")
			takesUp(a, a.begins())
			a.refuses(409, "agent_busy")
			if live := h.live("far"); live.Held || live.BackedOff {
				t.Errorf("it is held: %s", live.Message)
			}
			if !a.given() {
				t.Error("it is given nothing, though tasks wait and its slot is free")
			}
		})
	}
}

// A new instance under the name of a closed one starts healthy.
func TestNewInstanceResetsHealth(t *testing.T) {
	h := newFixture(t, brisk)
	h.submit(engine.NewTask{})
	h.submit(engine.NewTask{})
	h.agent("far", 1).refuses(507, "")
	if h.live("far").Closed == nil {
		t.Fatal("it is not closed")
	}
	_, err := h.engine.PutAgent(t.Context(), signalbox.Agent{
		Name: "far", Kind: "demo", Slots: 1, Fencing: true, Source: signalbox.AgentPull, URL: signalbox.PullURL("another-instance"),
	}, "")
	h.must(err)
	next := &puller{h, "far", api.PullClaim{Instance: "another-instance", Slots: 1}}
	if !next.given() {
		t.Errorf("the new instance is given nothing: %s", h.live("far").Message)
	}
	if c := h.live("far").Closed; c != nil {
		t.Errorf("it is closed still: %+v", c)
	}
}
