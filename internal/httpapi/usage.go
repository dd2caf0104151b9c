package httpapi

import (
	"cmp"
	"context"
	"net/http"
	"slices"
	"strings"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/api"
	"github.com/signalbox-ai/signalbox/internal/budget"
	"github.com/signalbox-ai/signalbox/internal/engine"
	"github.com/signalbox-ai/signalbox/internal/httpapi/access"
	"github.com/signalbox-ai/signalbox/internal/httpapi/httpio"
	"github.com/signalbox-ai/signalbox/internal/httpapi/view"
	"github.com/signalbox-ai/signalbox/internal/store"
)

// defaultUsageDays is the default range of days.
const defaultUsageDays = 30

// usageHandler sums up what runs used.
type usageHandler struct{ engine *engine.Engine }

// usageNames has the keys by which usage can be listed.
var usageNames = map[string]func(*signalbox.Usage) string{
	"day":      func(u *signalbox.Usage) string { return u.Day.String() },
	"agent":    func(u *signalbox.Usage) string { return u.Agent },
	"schedule": func(u *signalbox.Usage) string { return u.Schedule },
	"user":     func(u *signalbox.Usage) string { return u.Owner },
	"model":    func(u *signalbox.Usage) string { return u.Model },
}

// usage is GET /api/usage.
func (h *usageHandler) usage(w http.ResponseWriter, r *http.Request) error {
	by := cmp.Or(httpio.Param(r, "by"), "day")
	name := usageNames[by]
	if name == nil {
		return signalbox.Invalid("by", "by must be day, agent, schedule, user or model, not %q", httpio.Clip(by))
	}
	q, err := h.query(r)
	if err != nil {
		return err
	}
	rows, err := h.engine.Read().Usage(r.Context(), q)
	if err != nil {
		return err
	}
	var total signalbox.Usage
	sums := map[string]signalbox.Usage{}
	for _, u := range rows {
		if access.CallerOf(r).Who.Sees(u.Owner, "", u.Agent) {
			total, sums[name(&u)] = total.Plus(u), sums[name(&u)].Plus(u)
		}
	}
	out := api.Usage{From: q.From.String(), To: q.To.String(), By: by, Rows: []api.UsageRow{}, Total: view.UsageSums(&total)}
	for n, u := range sums {
		row := api.UsageRow{Name: n, UsageSums: view.UsageSums(&u)}
		if by == "user" {
			row.Email = u.Email
		}
		out.Rows = append(out.Rows, row)
	}
	slices.SortFunc(out.Rows, func(a, b api.UsageRow) int {
		if by == "day" {
			return strings.Compare(a.Name, b.Name)
		}
		return cmp.Or(cmp.Compare(b.CostUSD, a.CostUSD), cmp.Compare(b.InputTokens+b.OutputTokens, a.InputTokens+a.OutputTokens), strings.Compare(a.Name, b.Name))
	})
	return httpio.Answer(w, http.StatusOK, out)
}

// query reads the filters of a request.
func (h *usageHandler) query(r *http.Request) (q store.UsageQuery, err error) {
	q = store.UsageQuery{Agent: httpio.Param(r, "agent"), Schedule: httpio.Param(r, "schedule"), Owner: httpio.Param(r, "user"), Model: httpio.Param(r, "model")}
	if q.To, err = dayParam(r, "to", signalbox.DayOf(h.engine.Now())); err != nil {
		return q, err
	}
	if q.From, err = dayParam(r, "from", q.To-defaultUsageDays+1); err != nil {
		return q, err
	}
	switch days := q.To - q.From + 1; {
	case days < 1:
		return q, signalbox.Invalid("from", "from is %s and to %s: from is the first day, to the last", q.From, q.To)
	case days > signalbox.UsageDays:
		return q, signalbox.Invalid("from", "from %s to %s are %d days: ask for at most %d", q.From, q.To, days, signalbox.UsageDays)
	}
	return q, nil
}

func dayParam(r *http.Request, name string, otherwise signalbox.Day) (signalbox.Day, error) {
	text := httpio.Param(r, name)
	if text == "" {
		return otherwise, nil
	}
	day, err := signalbox.ParseDay(text)
	if err != nil {
		return 0, signalbox.Invalid(name, "%q is no day: write it as 2006-01-02, in UTC", httpio.Clip(text))
	}
	return day, nil
}

func exportedUsage(u *signalbox.Usage) api.ExportedUsage {
	return api.ExportedUsage{
		Day: u.Day.String(), Agent: u.Agent, Schedule: u.Schedule, Owner: u.Owner, OwnerEmail: u.Email, Model: u.Model,
		Runs: u.Runs, Failed: u.Failed, RunMS: u.RunMS, InputTokens: u.InputTokens, OutputTokens: u.OutputTokens, NanoUSD: u.NanoUSD,
	}
}

// importUsage stores new rows of usage, and returns how many.
func (h *transferHandlers) importUsage(ctx context.Context, rows []api.ExportedUsage) (stored int, err error) {
	list := make([]signalbox.Usage, len(rows))
	for i := range rows {
		if list[i], err = importedUsage(&rows[i]); err != nil {
			return 0, err
		}
	}
	for _, u := range list {
		err := h.engine.RestoreUsage(ctx, u)
		if signalbox.CodeOf(err) == signalbox.CodeConflict {
			continue
		}
		if err != nil {
			return stored, err
		}
		stored++
	}
	return stored, nil
}

// maxUsageName limits the names in a row of usage, in bytes.
const maxUsageName = 200

func importedUsage(in *api.ExportedUsage) (u signalbox.Usage, err error) {
	day, err := signalbox.ParseDay(in.Day)
	if err != nil {
		return u, signalbox.Invalid("usage", "%v", err)
	}
	for _, name := range []string{in.Agent, in.Schedule, in.Owner, in.OwnerEmail, in.Model} {
		if len(name) > maxUsageName {
			return u, signalbox.Invalid("usage", "usage of %s has a name of %d bytes: at most %d are taken", day, len(name), maxUsageName)
		}
	}
	if min(in.Runs, in.Failed, in.RunMS, in.InputTokens, in.OutputTokens, in.NanoUSD) < 0 {
		return u, signalbox.Invalid("usage", "usage of %s has a figure below 0", day)
	}
	return signalbox.Usage{
		UsageKey: signalbox.UsageKey{Day: day, Agent: in.Agent, Schedule: in.Schedule, Owner: in.Owner, Model: in.Model},
		Email:    in.OwnerEmail, Runs: in.Runs, Failed: in.Failed, RunMS: in.RunMS,
		Spent: signalbox.Spent{InputTokens: in.InputTokens, OutputTokens: in.OutputTokens, NanoUSD: in.NanoUSD},
	}, nil
}

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
