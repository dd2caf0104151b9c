package push_test

import (
	"testing"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/internal/engine"
	"github.com/signalbox-ai/signalbox/internal/execution/push/agenttest"
)

// TestIncidentClaimsOfDyingDirectorsAreBounded: a task whose directors die, each right after its claim and
// before its offer, ends: the count of claims is kept across directors.
func TestIncidentClaimsOfDyingDirectorsAreBounded(t *testing.T) {
	s := newFixturePair(t)
	agent := s.agent(agenttest.Options{Name: "one"})
	s.take(s.a, "one")
	id := s.a.submit(engine.NewTask{})
	directors := []*fixture{s.a, s.b}
	ended := func() bool { return s.a.task(id).State.Terminal() }
	for turn := 0; !ended(); turn++ {
		if turn > 2*signalbox.MaxNoAnswers {
			t.Fatalf("%d directors died of it, and it continues: %+v", turn, s.a.task(id))
		}
		h := directors[turn%2]
		claims := s.a.task(id).Claims
		claimed := func() bool { return s.a.task(id).Claims > claims }
		s.bookOf(h).lapses(claimed)
		s.give(h, "one")
		h.await("it has claimed, or the task has ended", func() bool { return claimed() || ended() })
		h.await("its run has come to nothing", func() bool { return h.d.Busy() == 0 })
		s.bookOf(h).set("one", false)
		h.stop()
		s.bookOf(h).lapses(nil)
		h.start()
	}
	got := s.a.task(id)
	if got.State != signalbox.Failed || got.Reason != signalbox.ReasonDispatchFailed || got.Claims != signalbox.MaxNoAnswers ||
		got.NoAnswers != signalbox.MaxNoAnswers || got.Attempts != 0 {
		t.Errorf("it ended %s (%s) after %d claims, %d without an answer, %d attempts", got.State, got.Reason, got.Claims, got.NoAnswers, got.Attempts)
	}
	if n := len(agent.Executions()); n != 0 {
		t.Errorf("%d executions of what was never sent", n)
	}
	// The agent is free for the next task, at any live director.
	s.give(s.b, "one")
	next := s.b.submit(engine.NewTask{})
	agent.Finish(agent.AwaitStart(1).TaskID, agenttest.End{})
	s.b.ends(next, signalbox.ReasonCompleted)
}
