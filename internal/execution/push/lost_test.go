package push_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/api"
	"github.com/signalbox-ai/signalbox/internal/engine"
	. "github.com/signalbox-ai/signalbox/internal/execution/push/agenttest"
)

// After a lost answer to an offer the agent is asked.
func TestLostReplyIsAskedFor(t *testing.T) {
	t.Parallel()
	lost := map[string]Step{
		"reset":        Reset(),
		"hang":         Hang(),
		"drip":         Drip(201),
		"flood":        Flood(201),
		"garbage":      Garbage(200),
		"no task_id":   Say(201, map[string]string{"status": "working"}),
		"huge task_id": Say(201, api.AgentTaskAccepted{TaskID: strings.Repeat("x", 10_000)}),
	}
	agents := map[string]Options{"fencing": {}, "plain": {Plain: true}, "plain with strict ids": {Plain: true, StrictIDs: true}}
	for how, step := range lost {
		for kind, o := range agents {
			t.Run(how+"/"+kind, func(t *testing.T) {
				t.Parallel()
				o.NeverBusy = true // so that a second execution would be seen
				settings := []setting{shortAnswers}
				if how == "hang" || how == "drip" || how == "flood" {
					settings = append(settings, shortTimeouts)
				}
				t.Run("taken", func(t *testing.T) {
					h := newFixture(t, settings...)
					a := h.agent(o)
					a.Script(Offer, Taking(step))
					id := h.submit(engine.NewTask{})
					h.start()
					h.untilState(id, signalbox.Working)
					a.Finish(a.AwaitStart(1).TaskID, End{Output: "once"})
					if got := h.ends(id, signalbox.ReasonCompleted); got.Attempts != 0 || len(a.Executions()) != 1 {
						t.Errorf("%d attempts, %d executions", got.Attempts, len(a.Executions()))
					}
				})
				t.Run("not taken", func(t *testing.T) {
					h := newFixture(t, append(settings, fast)...)
					a := h.agent(o)
					a.Script(Offer, step)
					id := h.submit(engine.NewTask{})
					h.start()
					h.untilState(id, signalbox.Working)
					a.Finish(a.AwaitStart(1).TaskID, End{})
					got := h.ends(id, signalbox.ReasonCompleted)
					// The transport itself repeats an offer that a fencing agent recognizes.
					repeated := how == "reset" && kind == "fencing" && got.Attempts == 0
					if got.Attempts != 1 && !repeated || len(a.Executions()) != 1 {
						t.Errorf("%d attempts, %d executions", got.Attempts, len(a.Executions()))
					}
				})
			})
		}
	}
}

// A plain agent may have ended the task before it is asked.
func TestLostReplyFoundInHistoryOfPlainAgent(t *testing.T) {
	h := newFixture(t)
	a := h.agent(Options{Plain: true})
	// The previous task ended a moment ago and is in the history, too.
	before := h.submit(engine.NewTask{Prompt: "before"})
	h.start()
	h.untilState(before, signalbox.Working)
	a.Finish(h.task(before).TaskID, End{Output: "of the task before"})
	h.ends(before, signalbox.ReasonCompleted)
	a.Script(Offer, Taking(func(x *Exchange) {
		x.Agent.Finish(x.Agent.Executions()[1].TaskID, End{Output: "of the task"})
		Reset()(x)
	}))
	id := h.submit(engine.NewTask{Prompt: "the task"})
	h.ends(id, signalbox.ReasonCompleted)
	if r, _ := h.store.Result(t.Context(), id); r.Output != "of the task" {
		t.Errorf("its result is %q", r.Output)
	}
	if n := len(a.Executions()); n != 2 {
		t.Errorf("%d executions", n)
	}
}

// What a plain agent ran before, or runs for others, is not taken for the task.
func TestLostReplyIsNotMistakenForAnotherTask(t *testing.T) {
	h := newFixture(t, fast)
	a := h.agent(Options{Plain: true})
	before := h.submit(engine.NewTask{Prompt: "before"})
	h.start()
	h.untilState(before, signalbox.Working)
	a.Finish(h.task(before).TaskID, End{Output: "of the task before"})
	h.ends(before, signalbox.ReasonCompleted)
	a.Script(Offer, func(x *Exchange) {
		x.Agent.RunForeign("by hand")
		Reset()(x)
	})
	id := h.submit(engine.NewTask{Prompt: "the task"})
	h.until(id, "sent back", func(t signalbox.Task) bool { return t.Attempts == 1 })
	a.Finish(a.Executions()[1].TaskID, End{})
	h.untilState(id, signalbox.Working)
	a.Finish(a.AwaitStart(3).TaskID, End{Output: "of the task"})
	h.ends(id, signalbox.ReasonCompleted)
	if r, _ := h.store.Result(t.Context(), id); r.Output != "of the task" {
		t.Errorf("its result is %q", r.Output)
	}
}

// Nor is its run of a task that was requeued, whose row no longer has the agent's id.
func TestLostReplyIsNotMistakenForALostAttempt(t *testing.T) {
	h := newFixture(t)
	a := h.agent(Options{Plain: true})
	before := h.submit(engine.NewTask{Prompt: "before", OnLost: signalbox.LostRequeue})
	h.start()
	h.untilState(before, signalbox.Working)
	id := h.submit(engine.NewTask{Prompt: "the task"})
	a.Script(Offer, Reset())
	a.Restart(true)
	h.until(id, "sent back", func(t signalbox.Task) bool { return t.Attempts == 1 || t.State.Terminal() })
	if got := h.task(id); got.State.Terminal() {
		t.Fatalf("it ended with the end of another one: %s (%s)", got.Reason, got.Message)
	}
	a.AwaitStart(2)
	h.cancel(before)
	h.cancel(id)
}

// An offer can be unread in a stopped agent while the first request is answered, so "never seen" is only
// believed the second time.
func TestNeverSeenIsConfirmed(t *testing.T) {
	h := newFixture(t, shortTimeouts, func(h *fixture, _ *engine.Options) { h.opts.Confirm = 300 * time.Millisecond })
	a := h.agent(Options{NeverBusy: true})
	sign := make(chan struct{})
	a.Script(Offer, func(x *Exchange) {
		<-sign // whether or not the caller has given up
		Well()(x)
	})
	id := h.submit(engine.NewTask{})
	h.start()
	a.AwaitRequest(State, 1)
	close(sign)
	h.untilState(id, signalbox.Working)
	if n := len(a.Executions()); n != 1 {
		t.Errorf("%d executions", n)
	}
}

func TestInterruptedTaskIsRequeuedIfRequested(t *testing.T) {
	for _, memory := range []bool{true, false} {
		h := newFixture(t, fast)
		a := h.agent(Options{})
		id := h.submit(engine.NewTask{OnLost: signalbox.LostRequeue})
		h.start()
		h.untilState(id, signalbox.Working)
		a.Restart(memory)
		a.AwaitStart(2)
		h.untilState(id, signalbox.Working)
		a.Finish(id, End{})
		if got := h.ends(id, signalbox.ReasonCompleted); got.Attempts != 1 {
			t.Errorf("%d attempts, want 1", got.Attempts)
		}
	}
}

// silent lets the slot lease expire while the agent that runs a task is silent.
func (h *fixture) silent(a *Agent) {
	h.t.Helper()
	a.Silence()
	asked := func() int { return len(a.Requests(State)) + len(a.Requests(Output)) }
	// Once it is asked again, its earlier answers have been processed.
	before := asked()
	a.Await("the silent agent is asked", func() bool { return asked() > before })
	h.clock.silenceFor(ttl)
}

// A fencing agent that is silent for the slot lease loses its task; when it is back it may be offered the
// next one, with a higher fence, and stops the old run for it.
func TestSilentFencingAgentIsOfferedAHigherFenceWhenBack(t *testing.T) {
	h := newFixture(t, shortTimeouts, func(h *fixture, _ *engine.Options) { h.opts.FollowWait = 50 * time.Millisecond })
	a := h.agent(Options{IgnoresCancel: true})
	id := h.submit(engine.NewTask{})
	h.start()
	h.untilState(id, signalbox.Working)
	h.silent(a)
	got := h.ends(id, signalbox.ReasonLost)
	if !strings.Contains(got.Message, "silent") {
		t.Errorf("message %q", got.Message)
	}
	if slots, _ := h.store.Slots(t.Context()); len(slots) != 0 {
		t.Errorf("the slot is not free: %+v", slots)
	}
	next := h.submit(engine.NewTask{})
	a.Speak()
	h.untilState(next, signalbox.Working)
	runs := a.Executions()
	if runs[1].Fence <= runs[0].Fence || runs[0].State != "failed" {
		t.Errorf("the old run is %s with fence %d, the new one has fence %d", runs[0].State, runs[0].Fence, runs[1].Fence)
	}
	if o := a.Overlaps(); len(o) > 0 {
		t.Error(o)
	}
}

// A plain agent may still run it: its slot is withheld until it is idle, no longer knows the task, or the
// slot is released by hand.
func TestSilentPlainAgentKeepsItsSlotUntilItIsFree(t *testing.T) {
	for _, how := range []string{"idle", "forgot", "released"} {
		t.Run(how, func(t *testing.T) {
			h := newFixture(t, shortTimeouts)
			a := h.agent(Options{Plain: true, NeverBusy: true, IgnoresCancel: true})
			id := h.submit(engine.NewTask{})
			h.start()
			h.untilState(id, signalbox.Working)
			h.silent(a)
			h.ends(id, signalbox.ReasonLost)
			if slots, _ := h.store.Slots(t.Context()); len(slots) != 1 || !slots[0].Withheld {
				t.Fatalf("the slot is not withheld: %+v", slots)
			}
			next := h.submit(engine.NewTask{})
			seen := len(a.Requests(Status))
			a.Speak()
			a.AwaitRequest(Status, seen+4)
			if n := len(a.Requests(Offer)); n != 1 {
				t.Fatalf("the agent is still at the lost task and was offered %d tasks", n)
			}
			switch how {
			case "idle":
				a.Finish(h.task(id).TaskID, End{Output: "too late"})
			case "forgot":
				a.Forget(false)
			case "released":
				if ids := h.release("fake"); len(ids) != 1 || ids[0] != id {
					t.Errorf("released %v", ids)
				}
				taken := func() bool { return h.task(next).State != signalbox.Pending }
				h.await("the slot is free, or the next task has it", func() bool { return h.live("fake").InUse == 0 || taken() })
				for !taken() && slices.Contains(h.release("fake"), next) { // usually no task holds the slot, and the offer is forced
					next = h.submit(engine.NewTask{}) // the previous slot was released while it was being claimed
				}
			}
			h.untilState(next, signalbox.Working)
			if got := h.task(id); got.Reason != signalbox.ReasonLost {
				t.Errorf("the late result changed a lost task: %+v", got)
			}
			if o := a.Overlaps(); len(o) > 0 && how != "released" {
				t.Error(o)
			}
		})
	}
}

// A second agent of the same name, at another address, does not know the task; that loses no task while the
// first agent is still there.
func TestNewAgentOfSameNameLosesNoTask(t *testing.T) {
	h := newFixture(t)
	first := h.agent(Options{})
	id := h.submit(engine.NewTask{})
	h.start()
	h.untilState(id, signalbox.Working)
	if !h.d.Answers(t.Context(), "fake") {
		t.Error("the agent is there and does not answer")
	}
	second := h.agent(Options{}) // takes over the row
	h.await("the newcomer is called", func() bool { return h.live("fake").URL == second.URL() && h.live("fake").Up })
	first.Print(id, "news\n") // ends the long poll at the first agent
	second.AwaitRequest(State, 2)
	if got := h.task(id); got.State != signalbox.Working {
		t.Fatalf("the task is %s: %s", got.State, got.Message)
	}
	if h.d.Heartbeat("fake", api.Heartbeat{State: "idle", URL: first.URL()}) {
		t.Error("a heartbeat from another address than the known one is taken in")
	}
	h.put(first.Row(), "")
	first.Finish(id, End{})
	h.ends(id, signalbox.ReasonCompleted)
	if len(second.Executions()) != 0 {
		t.Error("it ran at the newcomer")
	}
}

// The log of a lost task that runs again continues that of the previous attempt: a reader's position stays
// valid.
func TestLogOfSecondAttemptFollowsFirst(t *testing.T) {
	h := newFixture(t)
	a := h.agent(Options{})
	id := h.submit(engine.NewTask{OnLost: signalbox.LostRequeue})
	h.start()
	h.untilState(id, signalbox.Working)
	a.Print(id, "first\n")
	h.await("the first log is read", func() bool {
		out, ok := h.d.Output(t.Context(), id, 0, 0)
		return ok && out.Text == "first\n"
	})
	a.Finish(id, End{State: "failed", Error: &api.AgentError{Type: "interrupted", Message: "restarted"}})
	h.until(id, "working again", func(t signalbox.Task) bool { return t.State == signalbox.Working && t.Claims == 2 })
	a.Print(id, "second\n")
	h.await("the second log is read", func() bool {
		out, ok := h.d.Output(t.Context(), id, int64(len("first\n")), 0)
		return ok && out.Text == "second\n" && out.Seq == int64(len("first\n"))
	})
	a.Finish(id, End{})
	h.ends(id, signalbox.ReasonCompleted)
	if r, err := h.store.Result(t.Context(), id); err != nil || r.Tail != "first\nsecond\n" || r.TailSeq != 0 {
		t.Errorf("the stored log is %q from %d, %v", r.Tail, r.TailSeq, err)
	}
}

// The slot of a lost task that was requeued and runs elsewhere is freed by the report of its own agent, not
// by the id that another agent gave the task.
func TestWithheldSlotChecksItsOwnExecution(t *testing.T) {
	h := newFixture(t, shortTimeouts, fast)
	a := h.agent(Options{Name: "a", Plain: true, NeverBusy: true, IgnoresCancel: true})
	id := h.submit(engine.NewTask{OnLost: signalbox.LostRequeue})
	h.start()
	h.untilState(id, signalbox.Working)
	b := h.agent(Options{Name: "b", Plain: true})
	h.untilUp("b")
	h.silent(a)
	b.AwaitStart(1)
	h.until(id, "working at b", func(t signalbox.Task) bool { return t.State == signalbox.Working && t.Agent == "b" })
	b.Finish(b.Executions()[0].TaskID, End{})
	h.ends(id, signalbox.ReasonCompleted)
	seen := len(a.Requests(Status))
	a.Speak()
	only := h.submit(engine.NewTask{Agent: "a"})
	a.AwaitRequest(Status, seen+4)
	if slots, _ := h.store.Slots(t.Context()); len(slots) != 1 || !slots[0].Withheld || len(a.Executions()) != 1 {
		t.Errorf("the slot of a was freed while it was at the lost task: %+v", slots)
	}
	a.Finish(a.Executions()[0].TaskID, End{})
	h.untilState(only, signalbox.Working)
}

// A jump of the wall clock loses no agent.
func TestWallClockJumpLosesNoAgent(t *testing.T) {
	for _, day := range []time.Duration{24 * time.Hour, -24 * time.Hour} {
		h := newFixture(t, shortTimeouts)
		a := h.agent(Options{})
		id := h.submit(engine.NewTask{})
		h.start()
		h.untilState(id, signalbox.Working)
		h.clock.jumpWall(day)
		a.Down() // so that the dispatcher must decide
		h.await("the agent is down", func() bool { return !h.live("fake").Up })
		a.Up()
		h.untilUp("fake")
		a.Finish(id, End{})
		h.ends(id, signalbox.ReasonCompleted)
		next := h.submit(engine.NewTask{})
		h.untilState(next, signalbox.Working)
		a.Finish(next, End{})
		h.ends(next, signalbox.ReasonCompleted)
	}
}

// States that are not final, such as the seed's queued, do not end a task.
func TestUnknownAgentStateIsNotTerminal(t *testing.T) {
	h := newFixture(t)
	a := h.agent(Options{Plain: true})
	a.Script(State, Say(200, api.AgentTaskStatus{State: "queued"}), Say(200, struct{}{}), Say(200, api.AgentTaskStatus{State: "cancelling"}))
	id := h.submit(engine.NewTask{})
	h.start()
	a.AwaitRequest(State, 5)
	if got := h.task(id); got.State != signalbox.Working {
		t.Fatalf("the task is %s", got.State)
	}
	a.Finish(h.task(id).TaskID, End{State: "timeout"})
	h.ends(id, signalbox.ReasonRunTimeout)
}

// An agent with long polls need not serve a log.
func TestLongPollWithoutOutput(t *testing.T) {
	h := newFixture(t)
	a := h.agent(Options{NoOutput: true})
	id := h.submit(engine.NewTask{})
	h.start()
	a.AwaitRequest(State, 1)
	a.Finish(id, End{Output: "fine"})
	h.ends(id, signalbox.ReasonCompleted)
}

// A plain agent that moved the task to its history has not lost it.
func TestEndedTaskIsFoundInHistory(t *testing.T) {
	h := newFixture(t)
	a := h.agent(Options{Plain: true})
	id := h.submit(engine.NewTask{})
	h.start()
	task := h.untilState(id, signalbox.Working)
	a.Script(History, Say(200, api.AgentHistory{Entries: []api.AgentTaskStatus{{TaskID: task.TaskID, State: "completed", Output: "fine"}}}))
	for range 50 { // last, since it may be asked at once
		a.Script(State, Say(404, nil))
	}
	h.ends(id, signalbox.ReasonCompleted)
}
