package signalbox_test

import (
	"math"
	"testing"

	"github.com/signalbox-ai/signalbox"
)

func TestBudgetOfWhatIsNone(t *testing.T) {
	for name, b := range map[string]struct {
		usd    float64
		tokens int64
		field  string
	}{
		"negative":            {-1, 0, "budget.usd"},
		"no number":           {math.NaN(), 0, "budget.usd"},
		"infinite":            {math.Inf(1), 0, "budget.usd"},
		"too much":            {2e9, 0, "budget.usd"},
		"rounded to no bound": {1e-12, 0, "budget.usd"},
		"tokens below 0":      {1, -1, "budget.tokens"},
		"too many tokens":     {1, math.MaxInt64, "budget.tokens"},
	} {
		if got, err := signalbox.ParseBudget("budget", b.usd, b.tokens); signalbox.FieldOf(err) != b.field || got != (signalbox.Budget{}) {
			t.Errorf("%s: %+v, %v", name, got, err)
		}
	}
}

func TestBudget(t *testing.T) {
	b, err := signalbox.ParseBudget("budget", 20, 2000)
	if err != nil || b.USD() != 20 || b.String() != "$20.00, 2000 tokens" {
		t.Fatalf("%+v, %v: %s", b, err, b)
	}
	spent := signalbox.Spent{InputTokens: 900, OutputTokens: 100, NanoUSD: 19_999_999_999}
	if b.Over(spent) || b.Left(spent) != (signalbox.Budget{NanoUSD: 1, Tokens: 1000}) {
		t.Errorf("left: %+v", b.Left(spent))
	}
	spent.NanoUSD = 20_040_500_000
	if !b.Over(spent) || b.Left(spent).NanoUSD != 1 || b.Of(spent) != "$20.0405 of $20.00, 1000 of 2000 tokens" {
		t.Errorf("over by %s: left %+v", b.Of(spent), b.Left(spent))
	}
	spent.NanoUSD, spent.InputTokens = 0, math.MaxInt64
	if !b.Over(spent) {
		t.Error("tokens do not count")
	}
	if (signalbox.Budget{}).Over(spent) || (signalbox.Budget{}).Left(spent) != (signalbox.Budget{}) {
		t.Error("no bound is used up")
	}
	other := signalbox.Budget{Tokens: 500}
	if got := b.Least(other); got != (signalbox.Budget{NanoUSD: b.NanoUSD, Tokens: 500}) || other.Least(b) != got || other.Or(b) != got {
		t.Errorf("least: %+v", got)
	}
}

// spends returns the result of a run that cost usd.
func spends(usd float64) *signalbox.Result { return &signalbox.Result{CostUSD: usd} }

func TestNextRunsOfATaskShareItsBudget(t *testing.T) {
	task := taskIn("working")
	task.Budget, task.OnLost = signalbox.Budget{NanoUSD: 1e9}, signalbox.LostRequeue
	ev := eventOf("lost", task)
	ev.Reason, ev.Result = signalbox.ReasonLost, spends(0.6)
	again := step(t, task, ev).Task
	if again.State != signalbox.Pending {
		t.Fatalf("after 0.60 of 1.00: %s", again.State)
	}
	again.State = signalbox.Working
	ended := step(t, again, ev).Task
	if ended.State != signalbox.Failed || ended.Reason != signalbox.ReasonBudget || ended.Spent.NanoUSD != 12e8 {
		t.Errorf("after 1.20 of 1.00: %s (%s) %s", ended.State, ended.Reason, ended.Message)
	}
	limit := park(task, signalbox.Parking{Gate: closedMax})
	limit.Result = spends(1)
	if c := step(t, task, limit); c.Task.Reason != signalbox.ReasonBudget || c.Slot != signalbox.SlotFree {
		t.Errorf("parked: %+v", c.Task)
	}
}

func TestNextStopsARunThatIsOverItsBudget(t *testing.T) {
	task := taskIn("working")
	ev := eventOf("stop", task)
	ev.Reason, ev.Message = signalbox.ReasonBudget, "the budget of the day is used up"
	stopping := step(t, task, ev).Task
	end := eventOf("finish", stopping)
	end.Reason = signalbox.ReasonCancelled
	if got := step(t, stopping, end).Task; got.Reason != signalbox.ReasonBudget || got.Message != ev.Message {
		t.Errorf("%s: %s", got.Reason, got.Message)
	}
	end = eventOf("finish", task)
	end.Reason = signalbox.ReasonBudget
	if got := step(t, task, end).Task; got.State != signalbox.Failed || got.Reason != signalbox.ReasonBudget {
		t.Errorf("%s (%s)", got.State, got.Reason)
	}
}
