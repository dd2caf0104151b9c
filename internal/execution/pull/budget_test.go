package pull_test

import (
	"strings"
	"testing"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/api"
	"github.com/signalbox-ai/signalbox/internal/engine"
	"github.com/signalbox-ai/signalbox/internal/execution/pull"
)

// spends reports what a run has used so far.
func (a *puller) spends(t *api.AgentTask, usd float64, tokens int64) {
	a.h.t.Helper()
	_, err := a.report(t.QueueID, api.PullReport{Fence: t.Fence, Output: &api.PullOutput{}, CostUSD: usd, TokenUsage: &api.TokenUsage{Input: tokens}})
	a.h.must(err)
}

// A pull agent gets the budget of a run, and is told to stop runs that together exceed a shared budget.
// Later tasks wait; the usage that a lost run had reported counts.
func TestRunsAreStoppedAtTheirBudget(t *testing.T) {
	of := signalbox.Budgets{Task: signalbox.Budget{NanoUSD: 5e9}, Agents: map[string]signalbox.Budget{"*": {Tokens: 1000}}}
	h := newFixture(t, brisk, func(_ *pull.Options, eo *engine.Options) { eo.Budgets = of })
	a := h.agent("far", 3)
	first, second := h.submit(engine.NewTask{}), h.submit(engine.NewTask{})
	x, y := a.begins(), a.begins()
	for _, run := range []*api.AgentTask{x, y} {
		if b := run.Budget; b == nil || *b != (api.Budget{USD: 5, Tokens: 1000}) {
			t.Errorf("it may spend %+v", b)
		}
		a.accepts(run)
	}
	a.spends(x, 1, 600)
	a.spends(y, 1, 300)
	if h.task(first).State != signalbox.Working || h.task(second).State != signalbox.Working {
		t.Fatal("stopped too early")
	}
	a.spends(y, 1, 400)
	for _, id := range []string{first, second} {
		row := h.reaches(id, signalbox.Cancelling)
		if row.StopReason != signalbox.ReasonBudget || !strings.HasSuffix(row.StopMessage, "is used up: 1000 of 1000 tokens") {
			t.Errorf("%s: %s", row.StopReason, row.StopMessage)
		}
	}
	if got := a.claim(long); len(got.Stop) != 2 {
		t.Fatalf("%+v", got)
	}
	_, err := a.report(first, api.PullReport{Fence: x.Fence, Finished: &api.AgentTaskStatus{TaskID: "task-of-" + first, State: "cancelled", TokenUsage: &api.TokenUsage{Input: 600}}})
	h.must(err)
	_, err = a.report(second, api.PullReport{Fence: y.Fence, Unknown: true})
	h.must(err)
	for id, tokens := range map[string]int64{first: 600, second: 400} {
		if row := h.reaches(id, signalbox.Failed); row.Reason != signalbox.ReasonBudget || row.Spent.InputTokens != tokens {
			t.Errorf("%s %+v", row.Reason, row.Spent)
		}
	}
	a.c.Runs = nil
	waits := h.submit(engine.NewTask{})
	if got := a.claim(0); got.Task != nil || h.task(waits).State != signalbox.Pending {
		t.Errorf("%+v", got)
	}
	_, err = h.engine.Unpark(t.Context(), waits, "ann")
	h.must(err)
	if got := a.claim(long); got.Task == nil || got.Task.QueueID != waits || *got.Task.Budget != (api.Budget{USD: 5}) {
		t.Errorf("anyway: %+v", got)
	}
}
