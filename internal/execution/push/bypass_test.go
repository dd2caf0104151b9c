package push_test

import (
	"fmt"
	"net/http"
	"testing"
	"time"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/api"
	"github.com/signalbox-ai/signalbox/internal/engine"
	. "github.com/signalbox-ai/signalbox/internal/execution/push/agenttest"
)

// aside is a bypass task.
func aside() engine.NewTask {
	return engine.NewTask{Agent: "fake", Mode: signalbox.ModeBypass, AllowedTools: []string{"Read"}, SystemPrompt: "be brief"}
}

func fleetOf(n int) setting       { return func(_ *fixture, eo *engine.Options) { eo.Fleet = n } }
func bypassFleetOf(n int) setting { return func(_ *fixture, eo *engine.Options) { eo.BypassFleet = n } }

// Isolated executions run beside the slots: neither affects the other.
func TestBypassRunsBesideTheSlots(t *testing.T) {
	h := newFixture(t, noTick)
	a := h.agent(Options{Isolated: 2})
	h.start()
	h.untilUp("fake")
	own := h.submit(engine.NewTask{SessionID: "talk"})
	h.untilState(own, signalbox.Working)
	one, two := h.submit(aside()), h.submit(aside())
	h.untilState(one, signalbox.Working)
	h.untilState(two, signalbox.Working)
	if _, err := h.engine.Submit(t.Context(), withPrompt(aside())); signalbox.CodeOf(err) != signalbox.CodeAgentBusy {
		t.Errorf("a third one beside two isolated slots: %v", err)
	}
	live := h.live("fake")
	if live.InUse != 1 || live.IsolatedSlots != 2 || live.IsolatedInUse != 2 {
		t.Errorf("in use %d, isolated %d of %d", live.InUse, live.IsolatedInUse, live.IsolatedSlots)
	}
	seen := map[int]bool{}
	for _, o := range a.Requests(Offer)[1:] {
		seen[o.Task.Slot] = true
		if !o.Task.Isolated || o.Task.SessionID != "" || o.Task.SystemPrompt != "be brief" || fmt.Sprint(o.Task.AllowedTools) != "[Read]" {
			t.Errorf("the isolated offer is %+v", o.Task)
		}
	}
	if !seen[0] || !seen[1] {
		t.Errorf("isolated slots on the wire: %v, want 0 and 1", seen)
	}
	a.Finish(one, End{Output: "done"})
	got := h.ends(one, signalbox.ReasonCompleted)
	if got.SessionID != "" || !signalbox.Isolated(got.Slot) {
		t.Errorf("the isolated task has session %q and slot %d", got.SessionID, got.Slot)
	}
	// The agent's normal slot is still in use, its isolated one is free.
	next := h.submit(engine.NewTask{})
	h.untilState(h.submit(aside()), signalbox.Working)
	if got := h.task(next); got.State != signalbox.Pending {
		t.Errorf("a task beside a taken slot is %s", got.State)
	}
	a.Finish(own, End{})
	h.untilState(next, signalbox.Working)
	if o := a.Overlaps(); len(o) > 0 {
		t.Error(o)
	}
}

// An isolated run does not hold an agent, and is not mistaken for foreign work.
func TestBypassDoesNotBlockAgent(t *testing.T) {
	h := newFixture(t)
	a := h.agent(Options{Isolated: 1})
	h.start()
	h.untilUp("fake")
	id := h.submit(aside())
	h.untilState(id, signalbox.Working)
	h.d.Heartbeat("fake", beat("working", api.AgentCurrentTask{ID: a.Executions()[0].TaskID, QueueID: id, Fence: 1, Isolated: true}))
	row := a.Row()
	row.Version = "2" // makes the dispatcher request the status
	seen := len(a.Requests(Status))
	h.put(row, "")
	a.AwaitRequest(Status, seen+1)
	if h.live("fake").Held {
		t.Error("an isolated run held the agent")
	}
	h.untilState(h.submit(engine.NewTask{}), signalbox.Working)
}

// A 409 to an isolated offer pauses isolated offers for a short time, and nothing else.
func TestBypassRefusedAsBusy(t *testing.T) {
	h := newFixture(t)
	a := h.agent(Options{Isolated: 1})
	h.start()
	h.untilUp("fake")
	sign := make(chan struct{})
	a.Script(Offer, Busy(nil), Busy(nil), After(sign, Well()))
	begun := time.Now()
	id := h.submit(aside())
	h.until(id, "sent back", func(t signalbox.Task) bool { return t.LastError != "" })
	if live := h.live("fake"); live.Held || live.IsolatedInUse > 1 {
		t.Errorf("a refused isolated offer made it %+v", live)
	}
	close(sign)
	h.untilState(id, signalbox.Working)
	if took := time.Since(begun); took < 300*time.Millisecond {
		t.Errorf("offered three times within %s", took)
	}
	h.untilState(h.submit(engine.NewTask{}), signalbox.Working)
	if got := h.task(id); got.Attempts != 0 || got.Claims != 3 {
		t.Errorf("%d attempts, %d claims", got.Attempts, got.Claims)
	}
}

func TestBypassCancelAndRestart(t *testing.T) {
	h := newFixture(t)
	a := h.agent(Options{Isolated: 3})
	h.start()
	h.untilUp("fake")
	cancelled, kept, other := h.submit(aside()), h.submit(aside()), h.submit(aside())
	for _, id := range []string{cancelled, kept, other} {
		h.untilState(id, signalbox.Working)
	}
	h.cancel(cancelled)
	h.ends(cancelled, signalbox.ReasonCancelled)
	h.restart()
	h.untilUp("fake")
	if live := h.live("fake"); live.IsolatedInUse != 2 || live.InUse != 0 {
		t.Errorf("after a restart %d isolated and %d other runs are followed", live.IsolatedInUse, live.InUse)
	}
	a.Finish(kept, End{})
	h.ends(kept, signalbox.ReasonCompleted)
	h.cancel(other)
	h.ends(other, signalbox.ReasonCancelled)
}

// A release spares isolated runs, except those that were asked to stop and did not.
func TestBypassRelease(t *testing.T) {
	h := newFixture(t)
	a := h.agent(Options{Isolated: 2, IgnoresCancel: true})
	h.start()
	h.untilUp("fake")
	stuck, goesOn := h.submit(aside()), h.submit(aside())
	h.untilState(stuck, signalbox.Working)
	h.untilState(goesOn, signalbox.Working)
	h.cancel(stuck)
	h.untilState(stuck, signalbox.Cancelling)
	h.release("fake")
	h.ends(stuck, signalbox.ReasonCancelled)
	h.await("its slot is free", func() bool { return h.live("fake").IsolatedInUse == 1 })
	if h.live("fake").Held {
		t.Error("the release of an isolated run held the agent")
	}
	a.Finish(goesOn, End{})
	h.ends(goesOn, signalbox.ReasonCompleted)
}

// An isolated run of a silent agent is lost like any other, and its slot is freed by the same rules.
func TestBypassLost(t *testing.T) {
	for _, plain := range []bool{false, true} {
		h := newFixture(t, shortTimeouts, func(h *fixture, _ *engine.Options) { h.opts.FollowWait = 50 * time.Millisecond })
		a := h.agent(Options{Isolated: 1, Plain: plain, IgnoresCancel: true, NeverBusy: true})
		h.start()
		h.untilUp("fake")
		long := aside()
		long.TimeoutSeconds = 3600 // its own limit must not end it
		id := h.submit(long)
		h.untilState(id, signalbox.Working)
		h.silent(a)
		h.ends(id, signalbox.ReasonLost)
		slots, _ := h.store.Slots(t.Context())
		if want := map[bool]int{true: 1}[plain]; len(slots) != want {
			t.Errorf("plain %v: slots %+v", plain, slots)
		}
		a.Speak()
		h.await("the agent is up", func() bool { return h.live("fake").Up })
		h.untilState(h.submit(engine.NewTask{}), signalbox.Working) // its normal slots are not affected
		a.Finish(a.Executions()[0].TaskID, End{})
		h.await("the isolated slot is free", func() bool { return h.live("fake").IsolatedInUse == 0 })
	}
}

// A bypass task whose agent could not be reached is offered again without another event, and an agent without
// isolated slots gets none.
func TestBypassIsRetried(t *testing.T) {
	h := newFixture(t, noTick, fast)
	a := h.agent(Options{Isolated: 1, Auto: true})
	h.start()
	h.untilUp("fake")
	a.Script(Offer, Say(http.StatusInternalServerError, nil))
	h.ends(h.submit(aside()), signalbox.ReasonCompleted)
	h.agent(Options{Name: "plain", Plain: true})
	h.untilUp("plain")
	n := withPrompt(aside())
	n.Agent = "plain"
	if _, err := h.engine.Submit(t.Context(), n); signalbox.CodeOf(err) != signalbox.CodeUnsupported {
		t.Errorf("an agent without isolated slots: %v", err)
	}
}

// With a fleet limit no task waits beside a free slot: a freed slot makes other agents claim again, without a
// tick.
func TestFleetCeilingLeavesNobodyWaiting(t *testing.T) {
	h := newFixture(t, noTick, fleetOf(2))
	agents := map[string]*Agent{}
	for _, name := range []string{"a", "b", "c", "d"} {
		agents[name] = h.agent(Options{Name: name, NoSession: true})
	}
	h.start()
	for name := range agents {
		h.untilUp(name)
	}
	var ids []string
	for i := range 40 {
		n := engine.NewTask{}
		if i%2 == 0 {
			n.Agent = string(rune('a' + i/2%4))
		}
		ids = append(ids, h.submit(n))
	}
	for !h.allEnded(ids) {
		var working []signalbox.Task
		h.await("two run, or nobody waits beside a free slot", func() bool {
			free := len(h.idlers()) == 0 // read first, so that later claims only make the check stricter
			working, _ = h.store.InFlight(t.Context())
			return len(working) >= 2 || free && len(working) > 0
		})
		if len(working) > 2 {
			t.Fatalf("%d run under a ceiling of 2", len(working))
		}
		for _, w := range working {
			h.untilState(w.ID, signalbox.Working)
			agents[w.Agent].Finish(w.ID, End{})
			h.ends(w.ID, signalbox.ReasonCompleted)
		}
	}
}

// A pull agent counts towards the fleet limit although it has no lane here: the end of its run makes others
// claim again.
func TestFleetCeilingIncludesPullAgents(t *testing.T) {
	var f *failing
	h := newFixture(t, noTick, fleetOf(1), func(h *fixture, _ *engine.Options) { f = h.failing() })
	away := signalbox.Agent{Name: "away", Kind: "demo", URL: signalbox.PullURL("the-only-one"), Slots: 1, Fencing: true, Source: signalbox.AgentPull}
	h.put(away, "")
	h.agent(Options{Name: "here"})
	first := h.submit(engine.NewTask{Agent: "away"})
	h.start()
	h.untilUp("here")
	c, found, err := h.engine.Claim(t.Context(), away, 0)
	if err != nil || !found {
		t.Fatalf("no task for the agent that pulls: %v", err)
	}
	next := h.submit(engine.NewTask{Agent: "here"})
	submitted := f.tries.Load()
	h.submit(engine.NewTask{Agent: "here"}) // each submit makes the lane claim, one after the other
	h.await("the lane has claimed in vain", func() bool { return f.tries.Load() > submitted+1 })
	if got := h.task(next); got.State != signalbox.Pending {
		t.Fatalf("%s under a ceiling of 1, beside %s", got.State, first)
	}
	if _, err := h.engine.Finish(t.Context(), c.Task, engine.Outcome{Reason: signalbox.ReasonCompleted}); err != nil {
		t.Fatal(err)
	}
	h.untilState(next, signalbox.Working)
}

// The same for the fleet limit on isolated executions, when a task waits because its agent refused it at
// first.
func TestBypassCeilingLeavesNobodyWaiting(t *testing.T) {
	h := newFixture(t, noTick, bypassFleetOf(1))
	a := h.agent(Options{Name: "fake", Isolated: 2})
	b := h.agent(Options{Name: "other", Isolated: 2})
	h.start()
	h.untilUp("fake")
	h.untilUp("other")
	a.Script(Offer, Busy(nil))
	waits := h.submit(aside())
	h.until(waits, "sent back", func(t signalbox.Task) bool { return t.State == signalbox.Pending && t.LastError != "" })
	n := withPrompt(aside())
	n.Agent = "other"
	var first string
	h.await("the other one has the place", func() bool {
		got, err := h.engine.Submit(t.Context(), n)
		first = got.Task.ID
		return err == nil
	})
	// One of the two runs; when it has ended, the other one does.
	h.await("one runs", func() bool {
		return h.task(waits).State == signalbox.Working || h.task(first).State == signalbox.Working
	})
	for range 2 {
		working, _ := h.store.InFlight(t.Context())
		if len(working) != 1 {
			t.Fatalf("%d run under a ceiling of 1", len(working))
		}
		h.untilState(working[0].ID, signalbox.Working)
		if !a.TryFinish(working[0].ID, End{}) {
			b.Finish(working[0].ID, End{})
		}
		h.ends(working[0].ID, signalbox.ReasonCompleted)
		h.await("the next one runs", func() bool {
			w, _ := h.store.InFlight(t.Context())
			return len(w) == 1 || h.allEnded([]string{waits, first})
		})
	}
}
