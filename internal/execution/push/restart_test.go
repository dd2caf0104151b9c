package push_test

import (
	"context"
	"testing"
	"time"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/internal/engine"
	"github.com/signalbox-ai/signalbox/internal/execution/push"
	. "github.com/signalbox-ai/signalbox/internal/execution/push/agenttest"
	"github.com/signalbox-ai/signalbox/internal/store"
)

// A restarted director adopts tasks in flight in each state, with the agent up or back later.
func TestRestartAdoptsInFlight(t *testing.T) {
	for _, back := range []string{"up", "later", "moved"} {
		for _, state := range []signalbox.State{signalbox.Dispatching, signalbox.Working, signalbox.Cancelling} {
			for _, plain := range []bool{true, false} {
				t.Run(back+"/"+string(state), func(t *testing.T) {
					t.Parallel()
					h := newFixture(t)
					a := h.agent(Options{Plain: plain, NeverBusy: true, IgnoresCancel: true})
					if state == signalbox.Dispatching {
						a.Script(Offer, Taking(Hang()))
					}
					id := h.submit(engine.NewTask{})
					h.start()
					e := a.AwaitStart(1)
					h.untilState(id, map[bool]signalbox.State{true: signalbox.Dispatching, false: signalbox.Working}[state == signalbox.Dispatching])
					if state == signalbox.Cancelling {
						h.cancel(id)
					}
					h.stop()
					switch back {
					case "later":
						a.Down()
						h.start()
						a.Up()
					case "moved":
						a.Move()
						h.start()
						h.put(a.Row(), "")
					default:
						h.start()
					}
					if state == signalbox.Dispatching {
						h.untilState(id, signalbox.Working)
					}
					a.Finish(e.TaskID, End{Output: "survived"})
					h.ends(id, signalbox.ReasonCompleted)
					if n := len(a.Executions()); n != 1 {
						t.Errorf("%d executions", n)
					}
				})
			}
		}
	}
}

// A task that was claimed and never sent returns to its place, at no attempt.
func TestRestartRequeuesUnsent(t *testing.T) {
	h := newFixture(t)
	a := h.agent(Options{})
	row := a.Row()
	id := h.submit(engine.NewTask{})
	if _, found, err := h.engine.Claim(context.Background(), row, 0); err != nil || !found {
		t.Fatalf("claim: %v %v", found, err)
	}
	h.start()
	h.untilState(id, signalbox.Working)
	a.Finish(id, End{})
	if got := h.ends(id, signalbox.ReasonCompleted); got.Attempts != 0 || got.NoAnswers != 1 || got.Claims != 2 {
		t.Errorf("%d attempts, %d without answer, %d claims", got.Attempts, got.NoAnswers, got.Claims)
	}
}

// A task of an agent that no longer exists cannot be asked about.
func TestRestartLosesTasksOfRemovedAgents(t *testing.T) {
	h := newFixture(t)
	row := signalbox.Agent{Name: "ghost", Kind: "demo", URL: "http://127.0.0.1:1", Slots: 1}
	id := h.submit(engine.NewTask{})
	c, found, err := h.engine.Claim(context.Background(), row, 0)
	if err != nil || !found {
		t.Fatalf("claim: %v %v", found, err)
	}
	if _, err := h.engine.Accept(context.Background(), c.Task, "task-1", ""); err != nil {
		t.Fatal(err)
	}
	h.start()
	h.ends(id, signalbox.ReasonLost)
}

// A withheld slot is also withheld by the next director.
func TestRestartKeepsSlotsWithheld(t *testing.T) {
	h := newFixture(t, shortTimeouts)
	a := h.agent(Options{Plain: true, NeverBusy: true, IgnoresCancel: true})
	id := h.submit(engine.NewTask{})
	h.start()
	h.untilState(id, signalbox.Working)
	h.silent(a)
	h.ends(id, signalbox.ReasonLost)
	h.restart()
	next := h.submit(engine.NewTask{})
	seen := len(a.Requests(Status))
	a.Speak()
	a.AwaitRequest(Status, seen+4)
	if n := len(a.Requests(Offer)); n != 1 {
		t.Errorf("%d offers", n)
	}
	a.Finish(h.task(id).TaskID, End{})
	h.untilState(next, signalbox.Working)
}

// If an agent moves while it runs a task, the task is followed at the new address.
func TestAgentMovesMidRun(t *testing.T) {
	for _, plain := range []bool{true, false} {
		h := newFixture(t)
		a := h.agent(Options{Plain: plain})
		id := h.submit(engine.NewTask{})
		h.start()
		h.untilState(id, signalbox.Working)
		a.Move()
		h.put(a.Row(), "")
		a.Finish(h.task(id).TaskID, End{})
		h.ends(id, signalbox.ReasonCompleted)
		next := h.submit(engine.NewTask{})
		h.untilState(next, signalbox.Working)
	}
}

// Drain takes no new tasks and leaves running ones to their agents.
func TestDrainLeavesRunningTasks(t *testing.T) {
	h := newFixture(t)
	a := h.agent(Options{Slots: 2})
	id := h.submit(engine.NewTask{})
	h.start()
	h.untilState(id, signalbox.Working)
	over, cancel := context.WithCancel(context.Background())
	cancel()
	h.await("the run alone is left", func() bool { return h.d.Drain(over) == 1 }) // a claim may have been in progress
	waiting := h.submit(engine.NewTask{})
	done := make(chan int)
	go func() { done <- h.d.Drain(context.Background()) }()
	a.Finish(id, End{})
	if left := <-done; left != 0 {
		t.Errorf("%d runs are left", left)
	}
	h.ends(id, signalbox.ReasonCompleted)
	if got := h.task(waiting); got.State != signalbox.Pending {
		t.Errorf("a draining dispatcher claimed: %s", got.State)
	}
}

func TestStopLeavesRowsInFlight(t *testing.T) {
	h := newFixture(t)
	a := h.agent(Options{})
	id := h.submit(engine.NewTask{})
	h.start()
	h.untilState(id, signalbox.Working)
	h.stop()
	if got := h.task(id); got.State != signalbox.Working || a.Executions()[0].End != 0 || len(a.Requests(Cancel)) > 0 {
		t.Errorf("a stop made the task %s", got.State)
	}
	// What happened between two directors is processed by the next one.
	h.cancel(id)
	h.start()
	h.ends(id, signalbox.ReasonCancelled)
}

func TestCancelRunning(t *testing.T) {
	h := newFixture(t)
	h.agent(Options{Slots: 3})
	h.start()
	var ids []string
	for range 3 {
		ids = append(ids, h.submit(engine.NewTask{}))
	}
	for _, id := range ids {
		h.untilState(id, signalbox.Working)
	}
	h.d.CancelRunning(context.Background(), "the shutdown")
	if left := h.d.Drain(context.Background()); left != 0 {
		t.Errorf("%d left", left)
	}
	for _, id := range ids {
		h.ends(id, signalbox.ReasonCancelled)
	}
}

// Two dispatchers over one store do not dispatch a task twice.
func TestTwoDispatchersDoNotDoubleDispatch(t *testing.T) {
	h := newFixture(t)
	a := h.agent(Options{Name: "a", Slots: 2, Auto: true})
	b := h.agent(Options{Name: "b", Auto: true})
	h.start()
	second := push.New(h.engine, h.opts)
	if err := second.Start(context.Background()); err != nil {
		t.Fatal(err)
	}
	defer second.Stop()
	var ids []string
	for range 100 {
		ids = append(ids, h.submit(engine.NewTask{}))
	}
	for _, id := range ids {
		h.ends(id, signalbox.ReasonCompleted)
	}
	runs := map[string]int{}
	for _, e := range append(a.Executions(), b.Executions()...) {
		runs[e.QueueID]++
	}
	for _, id := range ids {
		if runs[id] != 1 {
			t.Errorf("task %s ran %d times", id, runs[id])
		}
	}
}

// If the store cannot be read, Start fails and starts nothing.
func TestFailedStartStartsNothing(t *testing.T) {
	h := newFixture(t)
	h.agent(Options{})
	d := push.New(h.engine, h.opts)
	over, cancel := context.WithCancel(context.Background())
	cancel()
	if err := d.Start(over); err == nil {
		t.Error("started over a store that cannot be read")
	}
}

// A removed agent is offered nothing, even when a run has just ended.
func TestRemovedAgentIsOfferedNothing(t *testing.T) {
	h := newFixture(t)
	a := h.agent(Options{})
	id := h.submit(engine.NewTask{})
	h.start()
	h.untilState(id, signalbox.Working)
	a.Finish(id, End{})
	h.ends(id, signalbox.ReasonCompleted)
	if err := h.engine.RemoveAgent(context.Background(), "fake", "tester"); err != nil {
		t.Fatal(err)
	}
	h.await("the agent is gone", func() bool { return len(h.d.Agents()) == 0 })
	next := h.submit(engine.NewTask{})
	h.put(a.Row(), "") // and it comes back
	h.untilState(next, signalbox.Working)
}

// The director's own executor follows its tasks by itself: it is not asked like an agent, and its tasks are
// neither adopted nor lost, however long they run.
func TestExecutorAgentsAreIgnored(t *testing.T) {
	h := newFixture(t)
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	row, err := h.engine.PutExecutor(t.Context(), signalbox.ExecutorCommands, signalbox.DefaultInstance, 5)
	must(err)
	var tasks []signalbox.Task
	for i := range 3 {
		_, err := h.engine.Submit(t.Context(), engine.NewTask{Mode: signalbox.ModeTool, Tool: "report"})
		must(err)
		c, found, err := h.engine.Claim(t.Context(), row, 0)
		must(err)
		if !found {
			t.Fatal("nothing to claim")
		}
		if i > 0 {
			c.Task, err = h.engine.Accept(t.Context(), c.Task, "", "")
			must(err)
		}
		tasks = append(tasks, c.Task)
	}
	h.start()
	if _, known := h.d.LiveAgent(row.Name); known || len(h.d.Agents()) != 0 {
		t.Errorf("%+v", h.d.Agents())
	}
	h.clock.silenceFor(2 * ttl)
	a := h.agent(Options{}) // more of its rounds
	id := h.submit(engine.NewTask{})
	a.Finish(a.AwaitStart(1).TaskID, End{Output: "done"})
	h.ends(id, signalbox.ReasonCompleted)
	for _, task := range tasks {
		if now := h.task(task.ID); now.Rev != task.Rev {
			t.Errorf("%s is %s: %s", now.ID, now.State, now.Message)
		}
	}
	for _, task := range tasks {
		_, err := h.engine.Finish(t.Context(), task, engine.Outcome{Reason: signalbox.ReasonCompleted})
		must(err)
	}
}

// A task in flight that is not followed, which should not happen, is adopted after a while, and its agent is
// asked about it.
func TestUnfollowedTaskIsAdopted(t *testing.T) {
	h := newFixture(t)
	a := h.agent(Options{})
	foreign := a.RunForeign("so that nothing is offered")
	h.start()
	h.await("the agent is held", func() bool { return h.live("fake").Held })
	id := h.submit(engine.NewTask{})
	c, found, err := h.engine.Claim(t.Context(), h.live("fake").Agent, 0)
	if err != nil || !found || c.Task.ID != id {
		t.Fatalf("claimed %+v, %v, %v", c.Task, found, err)
	}
	h.await("it is taken up and given back", func() bool {
		h.clock.silenceFor(time.Second)
		return h.task(id).State == signalbox.Pending
	})
	if got := h.task(id); got.Attempts != 0 || got.LastError == "" {
		t.Errorf("%d attempts, %q", got.Attempts, got.LastError)
	}
	a.Finish(foreign, End{})
	h.untilState(id, signalbox.Working)
	a.Finish(id, End{})
	h.ends(id, signalbox.ReasonCompleted)
	if n := len(a.Executions()); n != 2 {
		t.Errorf("%d executions", n)
	}
}

// A director that was paused may withhold a slot when another one already has its agent: that one frees it
// when the agent is idle.
func TestSlotWithheldElsewhereIsReleased(t *testing.T) {
	h := newFixture(t)
	a := h.agent(Options{Plain: true})
	h.start()
	h.untilUp("fake")
	h.submit(engine.NewTask{Kind: "nobody"})
	ctx, now := context.Background(), h.clock.now()
	got, err := h.store.Claim(ctx, store.ClaimRequest{
		Agent: "fake", AgentURL: a.URL(), Slots: 1, Queues: []string{signalbox.PoolQueue("nobody")}, Now: now, Expires: now.Add(ttl),
	})
	if err != nil || !got.Found {
		t.Fatalf("%+v, %v", got, err)
	}
	task, err := h.engine.Accept(ctx, got.Task, "task-elsewhere", "")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := h.engine.Lose(ctx, task, signalbox.ReasonLost, "silent", true, nil); err != nil {
		t.Fatal(err)
	}
	h.clock.silenceFor(11 * time.Second) // such slots are searched for every ten seconds
	h.await("the slot is free", func() bool {
		slots, err := h.store.Slots(ctx)
		return err == nil && len(slots) == 0
	})
	h.untilState(h.submit(engine.NewTask{}), signalbox.Working)
}
