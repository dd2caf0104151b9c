package push_test

import (
	"testing"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/api"
	"github.com/signalbox-ai/signalbox/internal/engine"
	. "github.com/signalbox-ai/signalbox/internal/execution/push/agenttest"
)

func TestCancelPending(t *testing.T) {
	h := newFixture(t)
	id := h.submit(engine.NewTask{})
	h.start()
	if got := h.cancel(id); got.State != signalbox.Cancelled {
		t.Errorf("it is %s", got.State)
	}
	a := h.agent(Options{Auto: true})
	other := h.submit(engine.NewTask{})
	h.ends(other, signalbox.ReasonCompleted)
	if n := len(a.Executions()); n != 1 {
		t.Errorf("%d executions", n)
	}
}

func TestCancelWorking(t *testing.T) {
	for _, plain := range []bool{true, false} {
		h := newFixture(t)
		a := h.agent(Options{Plain: plain})
		id := h.submit(engine.NewTask{})
		h.start()
		h.untilState(id, signalbox.Working)
		if got := h.cancel(id); got.State != signalbox.Cancelling {
			t.Errorf("it is %s", got.State)
		}
		h.ends(id, signalbox.ReasonCancelled)
		if e := a.Executions()[0]; e.State != "cancelled" {
			t.Errorf("the agent's run is %s", e.State)
		}
	}
}

// A plain agent is asked for its state right after the cancel, not at the next poll.
func TestCancelOfPlainAgentIsNoticedAtOnce(t *testing.T) {
	h := newFixture(t, func(h *fixture, _ *engine.Options) { h.opts.PollInterval = ttl })
	h.agent(Options{Plain: true})
	id := h.submit(engine.NewTask{})
	h.start()
	h.untilState(id, signalbox.Working)
	h.cancel(id)
	h.ends(id, signalbox.ReasonCancelled)
}

// The agent's first report counts: a task may complete while it is being cancelled.
func TestCancelLosesAgainstCompletion(t *testing.T) {
	h := newFixture(t)
	a := h.agent(Options{IgnoresCancel: true})
	id := h.submit(engine.NewTask{})
	h.start()
	h.untilState(id, signalbox.Working)
	h.cancel(id)
	a.AwaitRequest(Cancel, 1)
	a.Finish(id, End{Output: "done all the same"})
	h.ends(id, signalbox.ReasonCompleted)
}

func TestCancelIsRepeatedUntilAcknowledged(t *testing.T) {
	h := newFixture(t)
	a := h.agent(Options{})
	a.Script(Cancel, Say(500, nil), Reset())
	id := h.submit(engine.NewTask{})
	h.start()
	h.untilState(id, signalbox.Working)
	h.cancel(id)
	h.ends(id, signalbox.ReasonCancelled)
	if n := len(a.Requests(Cancel)); n != 3 {
		t.Errorf("told %d times", n)
	}
}

// A cancel while dispatching is sticky: it takes effect with any reply.
func TestCancelWhileDispatching(t *testing.T) {
	for name, reply := range map[string]Step{
		"201":                Well(),
		"409":                Busy(nil),
		"stale fence":        Stale(1000),
		"400":                Say(400, nil),
		"500":                Say(500, nil),
		"reply lost, taken":  Taking(Reset()),
		"reply lost, unseen": Reset(),
	} {
		for _, plain := range []bool{true, false} {
			h := newFixture(t)
			a := h.agent(Options{Plain: plain})
			sign := make(chan struct{})
			a.Script(Offer, After(sign, reply))
			id := h.submit(engine.NewTask{})
			h.start()
			a.AwaitRequest(Offer, 1)
			if got := h.cancel(id); got.State != signalbox.Dispatching {
				t.Errorf("%s: it is %s", name, got.State)
			}
			close(sign)
			h.ends(id, signalbox.ReasonCancelled)
			for _, e := range a.Executions() {
				if e.State != "cancelled" {
					t.Errorf("%s, plain %v: the agent's run is %s", name, plain, e.State)
				}
			}
			offers := a.Requests(Offer)
			for _, o := range offers { // the transport may repeat an offer that the agent recognizes
				if o.Task.Fence != offers[0].Task.Fence {
					t.Errorf("%s: offered again", name)
				}
			}
		}
	}
}

func TestReleaseStopsAgent(t *testing.T) {
	for _, plain := range []bool{true, false} {
		h := newFixture(t)
		a := h.agent(Options{Plain: plain, NeverBusy: true})
		a.Script(Cancel, Say(503, nil)) // it is told again
		id := h.submit(engine.NewTask{})
		h.start()
		h.untilState(id, signalbox.Working)
		next := h.submit(engine.NewTask{})
		h.release("fake")
		h.ends(id, signalbox.ReasonReleased)
		h.untilState(next, signalbox.Working)
		a.AwaitRequest(Cancel, 1)
		if plain {
			if o := a.Overlaps(); len(o) > 0 {
				t.Error(o)
			}
		}
		a.Await("the released run stops", func() bool { return a.Executions()[0].End != 0 })
		if got := h.task(id); got.Reason != signalbox.ReasonReleased {
			t.Errorf("the late word of a released execution counted: %+v", got)
		}
	}
}

// A task that is released while its offer is in flight is stopped once the agent's answer tells its id.
func TestReleaseWhileDispatchingStopsAgent(t *testing.T) {
	for _, plain := range []bool{true, false} {
		h := newFixture(t)
		a := h.agent(Options{Plain: plain})
		sign := make(chan struct{})
		a.Script(Offer, After(sign, Well()))
		id := h.submit(engine.NewTask{})
		h.start()
		a.AwaitRequest(Offer, 1)
		h.release("fake")
		h.ends(id, signalbox.ReasonReleased)
		close(sign)
		a.Await("the orphan stops", func() bool { e := a.Executions(); return len(e) == 1 && e[0].State == "cancelled" })
	}
}

// The late result of an execution that was lost here no longer counts.
func TestLateResultIsDiscarded(t *testing.T) {
	h := newFixture(t)
	a := h.agent(Options{IgnoresCancel: true})
	id := h.submit(engine.NewTask{})
	h.start()
	h.untilState(id, signalbox.Working)
	h.release("fake")
	h.ends(id, signalbox.ReasonReleased)
	a.AwaitRequest(Cancel, 1)
	a.Finish(id, End{Output: "too late"})
	next := h.submit(engine.NewTask{})
	h.untilState(next, signalbox.Working)
	if r, _ := h.store.Result(t.Context(), id); r.Output != "" {
		t.Errorf("the late output was stored: %q", r.Output)
	}
}

// An agent that has seen a higher fence, as after a restore from a backup, is offered a fence above it.
func TestStaleFenceIsRaised(t *testing.T) {
	h := newFixture(t)
	a := h.agent(Options{Auto: true})
	a.Script(Offer, Stale(1_000_000))
	id := h.submit(engine.NewTask{})
	h.start()
	if got := h.ends(id, signalbox.ReasonCompleted); got.Fence <= 1_000_000 || got.Attempts != 0 {
		t.Errorf("fence %d after %d attempts", got.Fence, got.Attempts)
	}
}

// A fence near the maximum would leave no room for the next one: an agent's report of one is ignored.
func TestAbsurdFenceIsIgnored(t *testing.T) {
	h := newFixture(t)
	a := h.agent(Options{Auto: true})
	a.Script(Status, Say(200, api.AgentStatus{Type: "agent", AgentKind: "demo", State: "idle", Fencing: true, LongPoll: true, HighestFence: 1<<63 - 1}))
	a.Script(Offer, Stale(1<<63-1))
	id := h.submit(engine.NewTask{})
	h.start()
	if got := h.ends(id, signalbox.ReasonCompleted); got.Fence > 1000 {
		t.Errorf("fence %d", got.Fence)
	}
}
