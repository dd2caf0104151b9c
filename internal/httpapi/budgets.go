package httpapi

import (
	"net/http"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/api"
	"github.com/signalbox-ai/signalbox/internal/budget"
	"github.com/signalbox-ai/signalbox/internal/engine"
	"github.com/signalbox-ai/signalbox/internal/httpapi/access"
	"github.com/signalbox-ai/signalbox/internal/httpapi/httpio"
	"github.com/signalbox-ai/signalbox/internal/httpapi/view"
)

// budgetHandlers list budgets.
type budgetHandlers struct{ engine *engine.Engine }

// list is GET /api/budgets. Callers that are limited to some agents see the budgets of these
// agents, and their own.
func (h *budgetHandlers) list(w http.ResponseWriter, r *http.Request) error {
	if err := h.engine.RefreshBudgets(r.Context()); err != nil {
		return err
	}
	who := access.CallerOf(r).Who
	all := api.Budgets{Task: view.Budget(h.engine.Options().Budgets.Task), Budgets: []api.BudgetState{}}
	for _, row := range h.engine.Budgets().Rows(h.engine.Now()) {
		own := row.Scope == budget.ScopeAgent && who.MayUse(row.Name.Name) ||
			row.Scope == budget.ScopeUser && (row.Name.Name == who.Key() || row.Name.Name == who.Email)
		if !who.Limited() || own {
			all.Budgets = append(all.Budgets, view.BudgetState(&row))
		}
	}
	return httpio.Answer(w, http.StatusOK, all)
}

// budgetOf converts the budget of a request; nil: none.
//
// Errors: CodeValidation.
func budgetOf(b *api.Budget) (signalbox.Budget, error) {
	if b == nil {
		return signalbox.Budget{}, nil
	}
	return signalbox.ParseBudget("budget", b.USD, b.Tokens)
}
