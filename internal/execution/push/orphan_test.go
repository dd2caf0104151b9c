package push_test

import (
	"strings"
	"testing"
	"time"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/internal/engine"
	. "github.com/signalbox-ai/signalbox/internal/execution/push/agenttest"
)

// stale waits until n reports of void executions of a task are stored.
func (h *fixture) stale(id string, n int) []signalbox.Stale {
	h.t.Helper()
	var list []signalbox.Stale
	h.await("what the void execution said is kept", func() bool {
		list, _ = h.store.Stales(h.t.Context(), id)
		return len(list) >= n
	})
	if len(list) != n {
		h.t.Fatalf("kept %+v, want %d", list, n)
	}
	return list
}

// The final report of a released execution is kept aside, with its log, and changes nothing.
func TestReleasedExecutionIsFollowedUntilEnd(t *testing.T) {
	const secret = "hunter2-is-my-password"
	for _, plain := range []bool{false, true} {
		h := newFixture(t)
		a := h.agent(Options{Plain: plain, IgnoresCancel: true})
		h.start()
		id := h.submit(engine.NewTask{Env: map[string]string{"PASSWORD": secret}})
		h.untilState(id, signalbox.Working)
		h.release("fake")
		before := h.ends(id, signalbox.ReasonReleased)
		a.AwaitRequest(Cancel, 1)
		run := a.Executions()[0]
		a.Print(run.TaskID, "late news\n")
		a.Finish(run.TaskID, End{State: "failed", Output: "late news\n", Error: failure("cannot log in with " + secret)})
		got := h.stale(id, 1)[0]
		if got.Fence != before.Fence || got.Agent != "fake" || got.TaskID != run.TaskID || got.State != "failed" || got.At.IsZero() {
			t.Errorf("plain %v: kept %+v", plain, got)
		}
		if !strings.Contains(got.Message, "cannot log in with ***") {
			t.Errorf("plain %v: message %q", plain, got.Message)
		}
		if got.Result.Output != "late news\n" || got.Result.Tail != "late news\n" {
			t.Errorf("plain %v: result %+v", plain, got.Result)
		}
		if after := h.task(id); after != before {
			t.Errorf("plain %v: the late word changed the task from %+v to %+v", plain, before, after)
		}
		if r, _ := h.store.Result(t.Context(), id); r.Output != "" {
			t.Errorf("plain %v: the late output became the result: %q", plain, r.Output)
		}
	}
}

// The agent ends the run by itself between the release and our stop.
func TestReleasedExecutionAlreadyEnded(t *testing.T) {
	h := newFixture(t)
	a := h.agent(Options{})
	h.start()
	id := h.submit(engine.NewTask{})
	h.untilState(id, signalbox.Working)
	a.Script(Cancel, func(x *Exchange) {
		x.Agent.Finish(id, End{Output: "too late"})
		Well()(x)
	})
	h.release("fake")
	if got := h.stale(id, 1)[0]; got.State != "completed" || got.Result.Output != "too late" {
		t.Errorf("kept %+v", got)
	}
	h.ends(id, signalbox.ReasonReleased)
}

// The answer to an offer that was released meanwhile tells what to stop.
func TestReleasedOfferIsFollowedUntilEnd(t *testing.T) {
	h := newFixture(t)
	a := h.agent(Options{})
	sign := make(chan struct{})
	a.Script(Offer, After(sign, Well()))
	id := h.submit(engine.NewTask{})
	h.start()
	a.AwaitRequest(Offer, 1)
	h.release("fake")
	close(sign)
	if got := h.stale(id, 1)[0]; got.State != "cancelled" {
		t.Errorf("kept %+v", got)
	}
}

// An agent that was silent for the slot lease comes back: the old execution is told to stop, and its report
// is kept; the requeued task continues under a higher fence.
func TestLostExecutionIsStoppedWhenAgentReturns(t *testing.T) {
	h := newFixture(t, shortTimeouts, fast, func(h *fixture, _ *engine.Options) { h.opts.FollowWait = 50 * time.Millisecond })
	a := h.agent(Options{})
	id := h.submit(engine.NewTask{OnLost: signalbox.LostRequeue})
	h.start()
	h.untilState(id, signalbox.Working)
	a.Print(id, "half of it\n")
	h.await("the log is read", func() bool { out, _ := h.d.Output(t.Context(), id, 0, 0); return out.Text != "" })
	a.Down() // its run continues
	h.await("the agent is down", func() bool { return !h.live("fake").Up })
	h.await("it is sent back", func() bool {
		h.clock.silenceFor(ttl) // again, in case an earlier answer was read late
		return h.task(id).Attempts == 1
	})
	h.clock.silenceFor(3 * ttl) // however long it is away
	a.Up()
	got := h.stale(id, 1)[0]
	if got.Fence != 1 || got.Result.Tail != "half of it\n" {
		t.Errorf("kept %+v", got)
	}
	h.until(id, "working again", func(t signalbox.Task) bool { return t.State == signalbox.Working && t.Fence > 1 })
	for _, e := range a.Executions()[1:] {
		if e.State != "working" {
			t.Errorf("the new execution is %s: it was stopped for the old one", e.State)
		}
	}
	a.Finish(id, End{Output: "all of it"})
	h.ends(id, signalbox.ReasonCompleted)
	if o := a.Overlaps(); len(o) > 0 {
		t.Error(o)
	}
}

// If an agent took a task and became silent before it answered, the fence identifies that execution when the
// agent is back: the newer execution of the same task is not stopped instead.
func TestUnansweredOfferIsStoppedByFence(t *testing.T) {
	h := newFixture(t, shortTimeouts, fast)
	a := h.agent(Options{})
	a.Script(Offer, Taking(func(x *Exchange) {
		go x.Agent.Down() // waits for this request
		Hang()(x)
	}))
	id := h.submit(engine.NewTask{})
	h.start()
	a.AwaitStart(1)
	h.await("the agent is down", func() bool { return !h.live("fake").Up })
	h.agent(Options{Name: "other"})
	h.clock.silenceFor(ttl)
	h.until(id, "working elsewhere", func(t signalbox.Task) bool { return t.State == signalbox.Working && t.Agent == "other" })
	a.Up()
	if got := h.stale(id, 1)[0]; got.Agent != "fake" || got.State != "cancelled" {
		t.Errorf("kept %+v", got)
	}
	if got := h.task(id); got.State != signalbox.Working {
		t.Errorf("the new execution is %s", got.State)
	}
}

// If an agent never says how an orphan ended, it is no longer asked when the slot lease is over.
func TestOrphanIsFollowedForLeaseOnly(t *testing.T) {
	h := newFixture(t, func(h *fixture, _ *engine.Options) { h.opts.FollowWait = 20 * time.Millisecond })
	a := h.agent(Options{IgnoresCancel: true, Slots: 2})
	h.start()
	id := h.submit(engine.NewTask{})
	h.untilState(id, signalbox.Working)
	h.release("fake")
	a.AwaitRequest(Cancel, 1)
	h.clock.silenceFor(ttl)
	asked, since := -1, time.Now()
	h.await("it is no longer asked", func() bool {
		if now := len(a.Requests(State)) + len(a.Requests(Output)); now != asked {
			asked, since = now, time.Now()
		}
		return time.Since(since) > 100*time.Millisecond // several times as long as a request takes
	})
	if list, _ := h.store.Stales(t.Context(), id); len(list) != 0 {
		t.Errorf("kept %+v", list)
	}
}

// If the store is down, the report is not lost.
func TestStaleReportIsStoredWhenStoreReturns(t *testing.T) {
	var f *failing
	h := newFixture(t, func(h *fixture, _ *engine.Options) { f = h.failing() })
	h.agent(Options{})
	h.start()
	id := h.submit(engine.NewTask{})
	h.untilState(id, signalbox.Working)
	f.stale.Store(2)
	h.release("fake")
	h.stale(id, 1)
	if f.stale.Load() != 0 {
		t.Error("the store was not down")
	}
}

// If a director ended before the agent learned of a release, the next one tells the agent, unless its report
// is already kept.
func TestOrphanSurvivesRestart(t *testing.T) {
	h := newFixture(t, func(h *fixture, _ *engine.Options) { h.opts.FollowWait = 20 * time.Millisecond })
	a := h.agent(Options{Slots: 2})
	h.start()
	told, untold := h.submit(engine.NewTask{}), h.submit(engine.NewTask{})
	h.untilState(told, signalbox.Working)
	h.untilState(untold, signalbox.Working)
	a.Finish(told, End{})
	h.ends(told, signalbox.ReasonCompleted)
	a.Always(Cancel, Hang())
	h.release("fake")
	h.ends(untold, signalbox.ReasonReleased)
	a.AwaitRequest(Cancel, 1)
	h.stop()
	a.ClearScripts()
	h.start()
	if got := h.stale(untold, 1)[0]; got.State != "cancelled" {
		t.Errorf("kept %+v", got)
	}
	heard := len(a.Requests(Cancel))
	h.restart()
	h.untilUp("fake")
	next := h.submit(engine.NewTask{})
	h.untilState(next, signalbox.Working)
	a.Finish(next, End{})
	h.ends(next, signalbox.ReasonCompleted)
	if got := len(a.Requests(Cancel)); got != heard {
		t.Errorf("it was told %d times more", got-heard)
	}
}
