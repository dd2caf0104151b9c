package pull_test

import (
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/api"
	"github.com/signalbox-ai/signalbox/internal/engine"
)

func TestPulledTaskCompletes(t *testing.T) {
	h := newFixture(t, noTick)
	a := h.agent("far", 1)
	id := h.submit(engine.NewTask{Prompt: "count", TimeoutSeconds: 60, Env: map[string]string{"KEY": "secret-value"}})
	got := a.begins()
	if got.QueueID != id || got.Prompt != "count" || got.TimeoutSeconds != 60 || got.Env["KEY"] != "secret-value" || got.Fence == 0 || got.Director != "rig" {
		t.Errorf("%+v", got)
	}
	if row := h.task(id); row.State != signalbox.Dispatching || row.AgentURL != "" {
		t.Errorf("%+v", row)
	}
	a.accepts(got)
	if row := h.task(id); row.State != signalbox.Working || row.TaskID != "task-of-"+id {
		t.Errorf("%+v", row)
	}
	rep := completed(got, "three")
	rep.Output = &api.PullOutput{Text: "one\ntwo\n", Next: 8}
	for range 2 { // the answer to the first is lost
		if _, err := a.report(id, rep); err != nil {
			t.Fatal(err)
		}
	}
	row := h.task(id)
	if row.State != signalbox.Completed || row.Reason != signalbox.ReasonCompleted {
		t.Errorf("%+v", row)
	}
	res, err := h.store.Result(t.Context(), id)
	h.must(err)
	if res.Output != "three" || res.Tail != "one\ntwo\n" {
		t.Errorf("%+v", res)
	}
	stales, err := h.store.Stales(t.Context(), id)
	if err != nil || len(stales) != 0 {
		t.Errorf("a report that came twice left %+v, %v", stales, err)
	}
}

// A submit reaches one of many idle agents at once, and wakes no other.
func TestSubmitWakesOneOfManyWaitingAgents(t *testing.T) {
	h := newFixture(t, noTick)
	const agents = 200
	var group sync.WaitGroup
	got := make(chan string, agents)
	for i := range agents {
		a := h.agent(fmt.Sprintf("far-%d", i), 1)
		group.Go(func() {
			if answer := a.claim(long); answer.Task != nil {
				got <- answer.Task.QueueID
			}
		})
	}
	h.parked(agents)
	begun := time.Now()
	id := h.submit(engine.NewTask{})
	if took := <-got; took != id {
		t.Errorf("%s, want %s", took, id)
	}
	if took := time.Since(begun); took > 10*time.Second {
		t.Errorf("it took %s", took)
	}
	h.parked(agents - 1)
	h.lanes.Drain()
	group.Wait()
	if len(got) != 0 {
		t.Error("another agent got it too")
	}
}

// Each of many tasks submitted at once finds an agent, woken by events alone.
func TestNoWakeUpIsLost(t *testing.T) {
	h := newFixture(t, noTick)
	const agents, tasks = 10, 200
	var group sync.WaitGroup
	done := make(chan struct{}, tasks)
	for i := range agents {
		a := h.agent(fmt.Sprintf("far-%d", i), 1)
		group.Go(func() {
			for {
				answer, err := h.lanes.Claim(t.Context(), a.name, a.c, long)
				if err != nil || answer.Task == nil {
					return
				}
				a.completes(answer.Task, "")
				done <- struct{}{}
			}
		})
	}
	for range tasks {
		group.Go(func() { h.submit(engine.NewTask{}) })
	}
	for n := range tasks {
		select {
		case <-done:
		case <-time.After(long):
			t.Fatalf("%d of %d tasks were taken", n, tasks)
		}
	}
	h.lanes.Drain()
	group.Wait()
}

// A turn of a session that waits for its time can become ready by the submit of another turn, whose event
// names only itself.
func TestSubmitReadiesAnotherSessionTurn(t *testing.T) {
	h := newFixture(t, noTick)
	a := h.agent("far", 1)
	first := h.submit(engine.NewTask{SessionID: "talk", Agent: "far", NotBefore: h.engine.Now().Add(time.Hour)})
	claimed := a.claiming(long)
	h.parked(1)
	h.pass(2 * time.Hour)
	h.submit(engine.NewTask{SessionID: "talk", Agent: "far"})
	if got := <-claimed; got.Task == nil || got.Task.QueueID != first {
		t.Errorf("it was given %+v, %s was due", got.Task, first)
	}
}

// The queues are those of other agents: its own, the pool of its kind, all.
func TestQueuesOfPullAgent(t *testing.T) {
	h := newFixture(t, noTick)
	a, b := h.agent("one", 1), h.agent("two", 1)
	second := b.claiming(long)
	h.parked(1)
	first := a.claiming(long)
	h.parked(2)
	mine := h.submit(engine.NewTask{Agent: "one"})
	if got := <-first; got.Task == nil || got.Task.QueueID != mine {
		t.Fatalf("%+v", got)
	}
	pool := h.submit(engine.NewTask{Kind: "demo"})
	if got := <-second; got.Task == nil || got.Task.QueueID != pool {
		t.Fatalf("%+v", got)
	}
}

// A claim whose answer was lost is answered again with the same execution, until the agent has accepted it.
func TestLostClaimAnswerIsRepeated(t *testing.T) {
	h := newFixture(t, noTick)
	a := h.agent("far", 2)
	id := h.submit(engine.NewTask{})
	lost := a.claim(0)
	again := a.claim(0)
	if lost.Task == nil || again.Task == nil || again.Task.QueueID != id || again.Task.Fence != lost.Task.Fence || again.Task.Slot != lost.Task.Slot {
		t.Fatalf("%+v, then %+v", lost.Task, again.Task)
	}
	if row := h.task(id); row.Claims != 1 {
		t.Errorf("%d claims", row.Claims)
	}
	a.has(again.Task)
	if got := a.claim(0); got.Task != nil || len(got.Ask) > 0 {
		t.Errorf("%+v", got)
	}
	// A task that it accepted and does not name is not given again: the agent is asked.
	a.accepts(again.Task)
	a.c.Runs = nil
	got := a.claim(0)
	if got.Task != nil || len(got.Ask) != 1 || got.Ask[0] != (api.PullAsk{QueueID: id, Fence: again.Task.Fence}) {
		t.Fatalf("%+v", got)
	}
	_, err := a.report(id, api.PullReport{Fence: again.Task.Fence, Unknown: true})
	h.must(err)
	if row := h.task(id); row.State != signalbox.Failed || row.Reason != signalbox.ReasonLost {
		t.Errorf("%+v", row)
	}
}

// A second claim of an agent ends the first; only one of them gets tasks.
func TestOneClaimAtATime(t *testing.T) {
	h := newFixture(t, noTick)
	a := h.agent("far", 1)
	first := a.claiming(long)
	h.parked(1)
	second := a.claiming(long)
	if got := <-first; got.Task != nil {
		t.Errorf("%+v", got)
	}
	h.parked(1)
	id := h.submit(engine.NewTask{})
	if got := <-second; got.Task == nil || got.Task.QueueID != id {
		t.Errorf("%+v", got)
	}
}

func TestTwoAgentsWithOneName(t *testing.T) {
	h := newFixture(t, noTick)
	h.agent("far", 1)
	_, err := h.lanes.Claim(t.Context(), "far", api.PullClaim{Instance: "another-instance", Slots: 1}, 0)
	refusedWith(t, err, signalbox.CodeConflict)
	_, err = h.lanes.Report(t.Context(), "far", h.submit(engine.NewTask{}), api.PullReport{Instance: "another-instance", Fence: 1, Unknown: true})
	refusedWith(t, err, signalbox.CodeConflict)
	_, err = h.lanes.Claim(t.Context(), "nobody", api.PullClaim{Instance: "another-instance", Slots: 1}, 0)
	refusedWith(t, err, signalbox.CodeNotFound)
}

// A drained agent does not block others, and gets tasks again once it is resumed.
func TestDrainedAgentLeavesTasksToOthers(t *testing.T) {
	h := newFixture(t, noTick)
	a, b := h.agent("one", 1), h.agent("two", 1)
	h.must(h.engine.Pause(t.Context(), signalbox.AgentQueue("one"), "", "", time.Time{}))
	first := a.claiming(long)
	h.parked(1)
	second := b.claiming(long)
	h.parked(2)
	id := h.submit(engine.NewTask{})
	if got := <-second; got.Task == nil || got.Task.QueueID != id {
		t.Fatalf("%+v", got)
	}
	next := h.submit(engine.NewTask{})
	h.must(h.engine.Resume(t.Context(), signalbox.AgentQueue("one"), ""))
	if got := <-first; got.Task == nil || got.Task.QueueID != next {
		t.Fatalf("%+v", got)
	}
}

// A draining director gives out nothing, and accepts reports.
func TestDrain(t *testing.T) {
	h := newFixture(t, noTick)
	a, b := h.agent("one", 1), h.agent("two", 1)
	id := h.submit(engine.NewTask{})
	got := a.begins()
	waits := b.claiming(long)
	h.parked(1)
	h.lanes.Drain()
	if answer := <-waits; answer.Task != nil {
		t.Errorf("%+v", answer)
	}
	_, err := h.lanes.Claim(t.Context(), "two", b.c, 0)
	refusedWith(t, err, signalbox.CodeUnavailable)
	a.completes(got, "done")
	h.reaches(id, signalbox.Completed)
}

// The bypass has its own slots.
func TestBypassOfPullAgent(t *testing.T) {
	h := newFixture(t, noTick)
	a := h.agent("far", 1)
	a.c.IsolatedSlots = 1
	waits := a.claiming(long)
	h.parked(1)
	id := h.submit(engine.NewTask{Agent: "far", Mode: signalbox.ModeBypass, SystemPrompt: "be brief"})
	got := <-waits
	if got.Task == nil || got.Task.QueueID != id || !got.Task.Isolated || got.Task.Slot != 0 || got.Task.SystemPrompt != "be brief" {
		t.Fatalf("%+v", got.Task)
	}
	a.has(got.Task)
	normal := h.submit(engine.NewTask{})
	if got := a.claim(0); got.Task == nil || got.Task.QueueID != normal || got.Task.Isolated {
		t.Fatalf("%+v", got.Task)
	}
}

// TestAbsurdReportedFenceIsIgnored: an agent that reports an absurd fence gets nothing and says why; the
// fences of others stay unchanged. Otherwise one agent could use up the numbers of the fleet.
func TestAbsurdReportedFenceIsIgnored(t *testing.T) {
	h := newFixture(t, noTick)
	evil, good := h.agent("evil", 1), h.agent("good", 1)
	evil.c.HighestFence = 1 << 53
	h.submit(engine.NewTask{Agent: "evil"})
	_, err := h.lanes.Claim(t.Context(), evil.name, evil.c, 0)
	refusedWith(t, err, signalbox.CodeValidation)
	if err == nil || signalbox.FieldOf(err) != "highest_fence" || !strings.Contains(err.Error(), "it cannot have seen that") {
		t.Errorf("the claim is refused with %v", err)
	}
	live, _ := h.lanes.LiveAgent("evil")
	if !live.Held || !strings.Contains(live.Message, "reports fence 9007199254740992") {
		t.Errorf("status says held %v: %q", live.Held, live.Message)
	}
	h.submit(engine.NewTask{Agent: "good"})
	if run := good.begins(); run.Fence != 1 {
		t.Errorf("the next task of another agent has fence %d", run.Fence)
	}
	evil.c.HighestFence = 5 // it reports a valid one again
	if run := evil.begins(); run.Fence != 6 {
		t.Errorf("its own next task has fence %d", run.Fence)
	}
	if live, _ = h.lanes.LiveAgent("evil"); live.Held || live.Message != "" {
		t.Errorf("status says held %v: %q", live.Held, live.Message)
	}
}

// The reported step statistics of an agent are shown while it is up; invalid figures are ignored.
func TestStepsOfPullAgent(t *testing.T) {
	h := newFixture(t)
	a := h.agent("far", 1)
	a.c.Steps = &api.AgentSteps{Limit: 3, Executed: 7, Refused: -2, Exempt: 1}
	a.claim(0)
	got, there := h.lanes.LiveAgent("far")
	if s := got.Steps; !there || s == nil || s.Limit != 3 || s.Calls["executed"] != 7 || s.Calls["refused"] != 0 || s.Exempt != 1 {
		t.Errorf("%+v", s)
	}
}
