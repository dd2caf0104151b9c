package engine

import (
	"context"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/internal/budget"
)

// Budgets returns what has been spent of each budget.
func (e *Engine) Budgets() *budget.Book { return e.budgets }

// RefreshBudgets reads what has been spent today. If the set of used-up budgets has changed, observers are
// told, so that agents claim again and runs are stopped. It is called every second.
func (e *Engine) RefreshBudgets(ctx context.Context) error {
	if !e.opts.Budgets.Daily() {
		return nil
	}
	accounts := map[string]string{}
	for _, a := range e.LiveAgents() {
		accounts[a.Name] = a.Account
	}
	changed, err := e.budgets.Refresh(ctx, e.store, accounts, e.Now())
	if changed {
		e.hub.publish(&Applied{Kind: signalbox.EventBudget})
	}
	return err
}

// readBudgets reads today's spending of budgets for which it is not known yet.
func (e *Engine) readBudgets(ctx context.Context) error {
	if !e.budgets.Due(e.Now()) {
		return nil
	}
	return e.RefreshBudgets(ctx)
}

// noteBudgets observes runs that begin or end.
func (e *Engine) noteBudgets(a *Applied) {
	switch t := &a.Task; {
	case a.From.InFlight() && !t.State.InFlight():
		e.budgets.Ended(t, a.Used)
	case a.Kind == signalbox.EventClaim && !a.Partial:
		e.budgets.Began(t)
	}
}

// checkBudgets refuses a budget that is too high, and a bypass call for which nothing is left today, since
// its caller waits.
func (e *Engine) checkBudgets(ctx context.Context, n *NewTask) error {
	if err := e.opts.Budgets.Check(n.Budget, n.By); err != nil || n.Mode != signalbox.ModeBypass {
		return err
	}
	if err := e.readBudgets(ctx); err != nil {
		return err
	}
	a, _ := e.LiveAgent(n.Agent)
	g := e.budgets.HoldingGate(&signalbox.Task{Owner: n.By.Key(), OwnerEmail: n.By.Email}, n.Agent, a.Account, e.Now())
	if g == nil {
		return nil
	}
	return &signalbox.Error{Code: signalbox.CodeBudget, Message: "the " + g.Text, RetryAfter: g.Until.Sub(e.Now())}
}

// gateBudget is open unless the task waits because a budget is used up.
func (e *Engine) gateBudget(t *signalbox.Task) Gate {
	if w := e.WaitsAt(t); w != nil && w.Kind == signalbox.GateBudget {
		return Gate{Name: "budget_left", Text: upperFirst(w.Text), Cure: "It goes on by itself then; signalbox unpark " + t.ID + " lets it run now; a higher budget needs a restart with another configuration."}
	}
	return Gate{Name: "budget_left", OK: true, Text: "No budget that it is on is used up", Detail: "signalbox budgets lists them"}
}
