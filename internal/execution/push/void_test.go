package push_test

import (
	"testing"
	"time"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/internal/engine"
	. "github.com/signalbox-ai/signalbox/internal/execution/push/agenttest"
)

// heldOffer delays an offer until the sign, even if its sender has given up, and then lets the agent have it.
func heldOffer(t *testing.T, sign <-chan struct{}, had chan<- struct{}) Step {
	return func(x *Exchange) {
		select {
		case <-sign:
			Well()(x)
			close(had)
		case <-t.Context().Done():
		}
	}
}

// A director decides to send a task and is paused. Another one takes the agent over, is told that the agent
// never saw the task, and requeues it. If the first offer arrives then, it does not run.
func TestIncidentOfferArrivesAfterRequeue(t *testing.T) {
	s := newFixturePair(t)
	agent := s.agent(Options{Name: "one", Slots: 2})
	sign, had := make(chan struct{}), make(chan struct{})
	agent.Script(Offer, heldOffer(t, sign, had))
	id := s.a.submit(engine.NewTask{Agent: "one"})
	agent.AwaitRequest(Offer, 1)
	if err := s.a.engine.Pause(t.Context(), "", "so that nothing is offered again at once", "test", time.Time{}); err != nil {
		t.Fatal(err)
	}
	s.a.stop()
	s.give(s.b, "one")
	s.b.untilState(id, signalbox.Pending)
	close(sign)
	<-had
	if n := len(agent.Executions()); n != 0 {
		t.Fatalf("the offer of a claim that is void was executed %d times", n)
	}
	if err := s.b.engine.Resume(t.Context(), "", "test"); err != nil {
		t.Fatal(err)
	}
	agent.Finish(agent.AwaitStart(1).TaskID, End{})
	if got := s.b.ends(id, signalbox.ReasonCompleted); got.Fence != 2 || got.Attempts != 0 {
		t.Errorf("fence %d, %d attempts", got.Fence, got.Attempts)
	}
}

// Isolated slots are numbered separately, and the promise names them.
func TestVoidNamesSlotOfOffer(t *testing.T) {
	h := newFixture(t) // an agent's pause is real time, which a fast clock would confuse with the task's wait
	a := h.agent(Options{Isolated: 1})
	a.Script(Offer, Garbage(200))
	h.start()
	h.untilUp("fake")
	id := h.submit(engine.NewTask{Agent: "fake", Mode: signalbox.ModeBypass})
	was := a.AwaitRequest(Void, 1)
	offer := a.AwaitRequest(Offer, 1).Task
	if v := was.Task; was.ID != id || v.Fence != offer.Fence || v.Slot != offer.Slot || !v.Isolated || !offer.Isolated || v.Director != offer.Director || v.Director == "" {
		t.Errorf("the promise is for %s: %+v, the offer was %+v", was.ID, v, offer)
	}
	a.Finish(a.AwaitStart(1).TaskID, End{})
	h.ends(id, signalbox.ReasonCompleted)
}

// An offer that arrives between the last request and the promise is the run, even if the agent could not
// report that it arrived.
func TestOfferBeforeVoidIsFollowed(t *testing.T) {
	for how, answer := range map[string]Step{"conflict": Well(), "disk full": Say(500, nil), "lost": Taking(Reset())} {
		t.Run(how, func(t *testing.T) { offerBeforeVoid(t, answer) })
	}
}

func offerBeforeVoid(t *testing.T, answer Step) {
	h := newFixture(t, shortTimeouts)
	a := h.agent(Options{NeverBusy: true})
	sign, had := make(chan struct{}), make(chan struct{})
	a.Script(Offer, heldOffer(t, sign, had))
	a.Script(Void, func(x *Exchange) {
		close(sign)
		<-had
		answer(x)
	})
	id := h.submit(engine.NewTask{})
	h.start()
	h.untilState(id, signalbox.Working)
	a.Finish(a.AwaitStart(1).TaskID, End{})
	if got := h.ends(id, signalbox.ReasonCompleted); got.Attempts != 0 || len(a.Executions()) != 1 {
		t.Errorf("%d attempts, %d executions", got.Attempts, len(a.Executions()))
	}
}

// An agent that cannot promise is believed; one that does not answer is asked again. In both cases the task
// continues.
func TestVoidIsRefused(t *testing.T) {
	t.Parallel()
	for how, steps := range map[string][]Step{
		"unknown path":         {Say(404, nil)},
		"method":               {Nothing(405)},
		"not understood":       {Say(400, nil)},
		"disk full":            {Say(500, nil), Say(500, nil)},
		"not for us":           {Say(401, nil), Say(401, nil)},
		"lost twice":           {Reset(), Taking(Reset())},
		"another promise":      {Say(200, map[string]any{"queue_id": "queue-other", "fence": 1, "status": "void"})},
		"nonsense for ever":    {Garbage(200), Garbage(200), Garbage(200), Garbage(200), Garbage(200), Garbage(200), Garbage(200), Garbage(200), Garbage(200), Garbage(200)},
		"a conflict for ever":  {Busy(nil), Busy(nil), Busy(nil), Busy(nil), Busy(nil), Busy(nil), Busy(nil), Busy(nil), Busy(nil), Busy(nil)},
		"a promise, but empty": {Nothing(200)},
	} {
		t.Run(how, func(t *testing.T) {
			t.Parallel()
			h := newFixture(t, fast)
			a := h.agent(Options{})
			a.Script(Offer, Garbage(200)) // nothing was taken, but that is unknown here
			a.Script(Void, steps...)
			id := h.submit(engine.NewTask{})
			h.start()
			a.Finish(a.AwaitStart(1).TaskID, End{})
			if got := h.ends(id, signalbox.ReasonCompleted); got.Attempts != 1 || len(a.Executions()) != 1 {
				t.Errorf("%d attempts, %d executions", got.Attempts, len(a.Executions()))
			}
			if n := len(a.Requests(Void)); n < len(steps) {
				t.Errorf("it was asked for its promise %d times, %d were to be answered", n, len(steps))
			}
		})
	}
}
