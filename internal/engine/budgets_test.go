package engine_test

import (
	"strings"
	"testing"
	"time"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/internal/engine"
)

func dollars(n float64) signalbox.Budget { return signalbox.Budget{NanoUSD: int64(n * 1e9)} }

func keepsBudgets(of signalbox.Budgets) func(*engine.Options) {
	return func(o *engine.Options) { o.Budgets = of }
}

// A caller that is not an admin may ask for less, but not for more than the director's budget of a task,
// neither at submit nor later.
func TestBudgetIsBoundedForNonAdmins(t *testing.T) {
	b := newFixture(t, keepsBudgets(signalbox.Budgets{Task: dollars(5)}))
	ann := signalbox.Principal{Kind: signalbox.PrincipalUser, ID: "ann", Scopes: []signalbox.Scope{signalbox.ScopeSubmit}}
	admin := signalbox.Principal{Kind: signalbox.PrincipalUser, ID: "root", Scopes: []signalbox.Scope{signalbox.ScopeAdmin}}
	task := b.submit(engine.NewTask{By: ann, Budget: signalbox.Budget{NanoUSD: 4e9, Tokens: 10}})
	if task.Budget != (signalbox.Budget{NanoUSD: 4e9, Tokens: 10}) {
		t.Errorf("%s", task.Budget)
	}
	_, err := b.Submit(t.Context(), engine.NewTask{Prompt: "p", By: ann, Budget: dollars(6)})
	wantCode(t, err, signalbox.CodeValidation, "budget")
	if !strings.Contains(err.Error(), "at most $5.00 (budgets.task of the director), not $6.00") {
		t.Error(err)
	}
	edit := func(by signalbox.Principal, to signalbox.Budget) error {
		row, err := b.store.Task(t.Context(), task.ID)
		b.must(err)
		task, err = b.Edit(t.Context(), task.ID, signalbox.Edit{Rev: row.Rev, Budget: &to}, by)
		return err
	}
	wantCode(t, edit(ann, dollars(6)), signalbox.CodeValidation, "budget")
	b.must(edit(ann, signalbox.Budget{Tokens: 3}))
	if task.Budget != (signalbox.Budget{NanoUSD: 5e9, Tokens: 3}) {
		t.Errorf("without a bound of its own it has %s", task.Budget)
	}
	b.must(edit(admin, dollars(60)))
	bob := ann
	bob.ID = "bob"
	wantCode(t, edit(bob, dollars(1)), signalbox.CodeForbidden, "")
	_, err = b.Cancel(t.Context(), task.ID, "ann")
	b.must(err)
	again, err := b.Retry(t.Context(), task.ID, engine.RetryEdit{By: ann})
	b.must(err)
	if again.Task.Budget != dollars(5) {
		t.Errorf("it is run again with %s", again.Task.Budget)
	}
}

// A director that has just started knows what was spent before its first claim.
func TestTheFirstClaimKnowsWhatWasSpent(t *testing.T) {
	b := newFixture(t)
	a := b.agent("coder", "demo", 1)
	b.submit(engine.NewTask{})
	c, found, err := b.Claim(t.Context(), a, 0)
	if err != nil || !found {
		t.Fatal(found, err)
	}
	_, err = b.Finish(t.Context(), c.Task, engine.Outcome{Reason: signalbox.ReasonCompleted, Result: &signalbox.Result{CostUSD: 3}})
	b.must(err)
	next := newFixtureOver(t, b.store, keepsBudgets(signalbox.Budgets{Agents: map[string]signalbox.Budget{"*": dollars(3)}}))
	next.see(engine.LiveAgent{Agent: a, Up: true})
	next.pass(time.Second)
	waits := next.submit(engine.NewTask{})
	if c, found, err := next.Claim(t.Context(), a, 0); found || !c.Held || err != nil {
		t.Errorf("claimed: %v, held: %v, %v", found, c.Held, err)
	}
	next.pass(14 * time.Hour) // it was 10:00
	if c, found, err := next.Claim(t.Context(), a, 0); !found || c.Task.ID != waits.ID || err != nil {
		t.Errorf("the next day: claimed: %v, %v", found, err)
	}
}
