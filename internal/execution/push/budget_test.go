package push_test

import (
	"strings"
	"testing"
	"time"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/api"
	"github.com/signalbox-ai/signalbox/internal/engine"
	. "github.com/signalbox-ai/signalbox/internal/execution/push/agenttest"
)

// budgets sets the budgets, and starts the test at noon, UTC, so that it ends on the same day.
func budgets(of signalbox.Budgets) setting {
	return func(h *fixture, eo *engine.Options) {
		eo.Budgets = of
		now := h.clock.now()
		h.clock.jumpWall(signalbox.DayOf(now).Start().Add(36 * time.Hour).Sub(now))
	}
}

func dollars(n float64) signalbox.Budget { return signalbox.Budget{NanoUSD: int64(n * 1e9)} }

// overBudget is the end of a run that its agent stopped at the budget.
var overBudget = End{State: "failed", Error: &api.AgentError{Type: "budget", Message: "it has spent 5.20 of 5.00 USD"}}

var ann = signalbox.Principal{Kind: signalbox.PrincipalUser, ID: "ann", Email: "ann@example.org", Scopes: []signalbox.Scope{signalbox.ScopeSubmit}}

// An agent is told what the run may spend, and what it reports at the end is no longer available to others.
func TestAnAgentIsToldWhatARunMaySpend(t *testing.T) {
	h := newFixture(t, budgets(signalbox.Budgets{Task: dollars(5), Day: dollars(8)}))
	a := h.agent(Options{})
	h.start()
	first := h.submit(engine.NewTask{})
	if b := a.AwaitStart(1).Budget; b == nil || *b != (api.Budget{USD: 5}) {
		t.Errorf("it may spend %+v", b)
	}
	a.Spend(first, 4.2)
	a.Finish(a.AwaitStart(1).TaskID, overBudget)
	if got := h.ends(first, signalbox.ReasonBudget); got.State != signalbox.Failed || got.Message != overBudget.Error.Message || got.Spent.USD() != 4.2 {
		t.Errorf("it ended %s with %q, having spent %g", got.State, got.Message, got.Spent.USD())
	}
	h.submit(engine.NewTask{Budget: signalbox.Budget{Tokens: 77}})
	if b := a.AwaitStart(2).Budget; b == nil || b.Tokens != 77 || b.USD < 3.79 || b.USD > 3.81 {
		t.Errorf("the next may spend %+v", b)
	}
}

// Runs that together use up a budget are stopped, and waiting tasks do not start until the day is over,
// unless they run anyway.
func TestRunsOfOneUserAreStoppedTogether(t *testing.T) {
	h := newFixture(t, budgets(signalbox.Budgets{Users: map[string]signalbox.Budget{"ann@example.org": dollars(10)}}))
	a := h.agent(Options{Slots: 5})
	h.start()
	first, second := h.submit(engine.NewTask{By: ann}), h.submit(engine.NewTask{By: ann})
	other := h.submit(engine.NewTask{})
	for n := range 3 {
		a.AwaitStart(n + 1)
	}
	for _, id := range []string{first, second, other} {
		h.untilState(id, signalbox.Working)
	}
	a.Spend(other, 100)
	a.Spend(first, 6)
	a.Spend(second, 4.5)
	for _, id := range []string{first, second} {
		if got := h.ends(id, signalbox.ReasonBudget); !strings.HasPrefix(got.Message, "the budget of user ann@example.org for "+h.clock.now().UTC().Format(time.DateOnly)+" is used up: $10.50 of $10.00") {
			t.Errorf("%s: %q", id, got.Message)
		}
	}
	waits := h.submit(engine.NewTask{By: ann})
	w, err := h.engine.Why(t.Context(), waits)
	if err != nil || !strings.Contains(w.Summary, "Budget of user ann@example.org") || w.NoETA == "" {
		t.Errorf("why: %q, %q, %v", w.Summary, w.NoETA, err)
	}
	h.untilState(h.submit(engine.NewTask{Prompt: "of nobody"}), signalbox.Working)
	if s := h.task(waits).State; s != signalbox.Pending {
		t.Errorf("it is %s", s)
	}
	if _, err := h.engine.Unpark(t.Context(), waits, "ann"); err != nil {
		t.Fatal(err)
	}
	h.untilState(waits, signalbox.Working)
	a.Spend(waits, 3)
	next := h.submit(engine.NewTask{By: ann})
	h.clock.jumpWall(12 * time.Hour)
	h.untilState(next, signalbox.Working)
	if s := h.task(waits).State; s != signalbox.Working {
		t.Errorf("what runs anyway is %s", s)
	}
}

// Agents of a used-up budget claim again when the day is over, without another event.
func TestADayThatIsOverOpensBudgets(t *testing.T) {
	h := newFixture(t, budgets(signalbox.Budgets{Agents: map[string]signalbox.Budget{"fake": dollars(1)}}))
	a, b := h.agent(Options{}), h.agent(Options{Name: "other", Auto: true})
	h.start()
	first := h.submit(engine.NewTask{Agent: "fake"})
	a.AwaitStart(1)
	h.untilState(first, signalbox.Working)
	a.Spend(first, 1)
	h.ends(first, signalbox.ReasonBudget)
	waits := h.submit(engine.NewTask{Agent: "fake"})
	h.ends(h.submit(engine.NewTask{Agent: "other"}), signalbox.ReasonCompleted)
	if n := len(a.Executions()); n != 1 || started(b) != 1 {
		t.Fatalf("%d and %d runs", n, started(b))
	}
	if g := h.engine.WaitsAt(new(h.task(waits))); g == nil || g.Kind != signalbox.GateBudget || g.Name != "agent fake" {
		t.Errorf("it waits at %+v", g)
	}
	h.clock.jumpWall(12 * time.Hour)
	h.untilState(waits, signalbox.Working)
	a.Finish(a.AwaitStart(2).TaskID, End{})
	h.ends(waits, signalbox.ReasonCompleted)
}

// What was spent before a restart counts after it: ended runs by the stored usage, runs in flight by their
// agents' new reports.
func TestWhatWasSpentSurvivesARestart(t *testing.T) {
	h := newFixture(t, budgets(signalbox.Budgets{Day: dollars(10)}))
	a := h.agent(Options{Slots: 3})
	h.start()
	ended, goesOn := h.submit(engine.NewTask{}), h.submit(engine.NewTask{})
	for n := range 2 {
		a.AwaitStart(n + 1)
	}
	for _, id := range []string{ended, goesOn} {
		h.untilState(id, signalbox.Working)
	}
	a.Spend(ended, 4)
	a.Finish(h.task(ended).TaskID, End{})
	h.ends(ended, signalbox.ReasonCompleted)
	a.Spend(goesOn, 3)
	h.restart()
	h.untilUp("fake")
	h.await("both count", func() bool { return h.engine.Budgets().Rows(h.clock.now())[0].Spent.USD() == 7 })
	a.Spend(goesOn, 6.5)
	h.ends(goesOn, signalbox.ReasonBudget)
}

// What a lost run had reported counts.
func TestWhatALostRunSpentCounts(t *testing.T) {
	h := newFixture(t, budgets(signalbox.Budgets{Day: dollars(10)}))
	a := h.agent(Options{})
	h.start()
	id := h.submit(engine.NewTask{})
	a.AwaitStart(1)
	h.untilState(id, signalbox.Working)
	a.Spend(id, 3)
	h.await("it is heard", func() bool { return h.engine.Budgets().Rows(h.clock.now())[0].Spent.USD() == 3 })
	a.Forget(false)
	if got := h.ends(id, signalbox.ReasonLost); got.Spent.USD() != 3 {
		t.Errorf("it has spent %g", got.Spent.USD())
	}
	if got := h.engine.Budgets().Rows(h.clock.now())[0].Spent.USD(); got != 3 {
		t.Errorf("of the day %g are spent", got)
	}
}

// A bypass call is refused while nothing is left, since its caller waits.
func TestBypassIsRefusedWithoutBudget(t *testing.T) {
	h := newFixture(t, budgets(signalbox.Budgets{Day: dollars(1)}))
	a := h.agent(Options{Isolated: 2})
	h.start()
	id := h.submit(engine.NewTask{})
	a.AwaitStart(1)
	h.untilState(id, signalbox.Working)
	a.Spend(id, 2)
	h.ends(id, signalbox.ReasonBudget)
	_, err := h.engine.Submit(t.Context(), engine.NewTask{Prompt: "p", Agent: "fake", Mode: signalbox.ModeBypass})
	if signalbox.CodeOf(err) != signalbox.CodeBudget || !strings.Contains(err.Error(), "$2.00 of $1.00") {
		t.Errorf("got %v", err)
	}
}

// Two directors over one store share a budget: a run that ends at one counts at the other.
func TestTwoDirectorsKeepOneBudget(t *testing.T) {
	s := newFixturePair(t, budgets(signalbox.Budgets{Day: dollars(10)}))
	a, b := s.agent(Options{Name: "one"}), s.agent(Options{Name: "two"})
	s.goOver(s.a, s.b, "two")
	s.b.untilUp("two")
	first, second := s.a.submit(engine.NewTask{Agent: "one"}), s.a.submit(engine.NewTask{Agent: "two"})
	e := a.AwaitStart(1)
	b.AwaitStart(1)
	s.b.untilState(second, signalbox.Working)
	s.a.untilState(first, signalbox.Working)
	b.Spend(second, 5)
	a.Spend(first, 6)
	a.Finish(e.TaskID, End{})
	s.a.ends(first, signalbox.ReasonCompleted)
	s.b.ends(second, signalbox.ReasonBudget)
	s.a.await("what ended at the other counts", func() bool { return s.a.engine.Budgets().Rows(s.a.clock.now())[0].Spent.USD() == 11 })
	waits := s.a.submit(engine.NewTask{Agent: "one"})
	s.a.await("it waits at the budget", func() bool {
		g := s.a.engine.WaitsAt(new(s.a.task(waits)))
		return g != nil && g.Kind == signalbox.GateBudget
	})
	if n := started(a, b); n != 2 {
		t.Errorf("%d runs", n)
	}
}
