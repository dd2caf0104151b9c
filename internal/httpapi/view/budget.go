package view

import (
	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/api"
	"github.com/signalbox-ai/signalbox/internal/budget"
)

// Budget is the API form of a budget; nil if it is unlimited.
func Budget(b signalbox.Budget) *api.Budget {
	if b == (signalbox.Budget{}) {
		return nil
	}
	return &api.Budget{USD: b.USD(), Tokens: b.Tokens}
}

// BudgetState is the API form of a daily budget's state.
func BudgetState(row *budget.Row) api.BudgetState {
	v := api.BudgetState{
		Scope: string(row.Scope), Name: row.Name.Name, State: "open",
		Spent: api.BudgetSpent{USD: row.Spent.USD(), Tokens: row.Spent.Tokens()}, Budget: api.Budget{USD: row.Budget.USD(), Tokens: row.Budget.Tokens},
	}
	if g := row.Gate; g != nil {
		v.State, v.Text, v.Since, v.Until = "used_up", g.Text, Time(g.Since), Time(g.Until)
	}
	return v
}
