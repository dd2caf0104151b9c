package cli

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/api"
	"github.com/signalbox-ai/signalbox/client"
)

// budgetFlags bound what the runs of a task may spend.
type budgetFlags struct {
	usd    float64
	tokens int64
}

func (f *budgetFlags) register(cmd *cobra.Command) {
	cmd.Flags().Float64Var(&f.usd, "budget", 0, "`USD` that all its runs together may spend (default: budgets.task of the director; only admins may exceed it)")
	cmd.Flags().Int64Var(&f.tokens, "budget-tokens", 0, "`tokens`, input and output, that all its runs together may use (likewise)")
}

// given returns the budget, nil where no flag was given.
func (f *budgetFlags) given(cmd *cobra.Command) (*api.Budget, error) {
	if !cmd.Flags().Changed("budget") && !cmd.Flags().Changed("budget-tokens") {
		return nil, nil
	}
	if _, err := signalbox.ParseBudget("budget", f.usd, f.tokens); err != nil {
		return nil, usage("--budget, --budget-tokens: %s", err)
	}
	return &api.Budget{USD: f.usd, Tokens: f.tokens}, nil
}

func (a *app) budgetsCmd() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "budgets",
		Short: "Show the budgets, and how much of each is spent today",
		Long: `Show the daily budgets, of everything, of users, agents and accounts, and how much of each is spent today. Days are in
		UTC. Spent is what the runs that ended today cost, and what runs in flight have reported so far. When a budget is used
		up, its runs are stopped with the reason budget, and none starts until the day is over. The section budgets of the
		director's configuration sets them.`,
		Example: `  signalbox budgets
  signalbox budgets --json`,
	}
	return query(a, cmd, noArg((*client.Client).Budgets), func(all api.Budgets) {
		if all.Task != nil {
			a.say("Each task without a budget of its own: %s", budgetText(*all.Task))
		}
		list(a, all.Budgets, "No daily budgets: set them in the section budgets of the director's configuration.",
			[]string{"SCOPE", "NAME", "SPENT", "BUDGET", "STATE", "UNTIL"}, func(v *api.BudgetState) []string {
				return []string{v.Scope, v.Name, spentText(v), budgetText(v.Budget), strings.ReplaceAll(v.State, "_", " "), a.formatTimePtr(v.Until)}
			})
	})
}

func budgetText(b api.Budget) string {
	parsed, _ := signalbox.ParseBudget("budget", b.USD, b.Tokens) // an error: from another release, no bound
	return parsed.String()
}

// spentText lists what is spent of each bound.
func spentText(v *api.BudgetState) string {
	var parts []string
	if v.Budget.USD > 0 {
		parts = append(parts, "$"+usd(v.Spent.USD))
	}
	if v.Budget.Tokens > 0 {
		parts = append(parts, fmt.Sprintf("%d tokens", v.Spent.Tokens))
	}
	return strings.Join(parts, ", ")
}

// taskBudget describes a task's budget; "" for none.
func taskBudget(t *api.Task) string {
	if t.Budget == nil {
		return ""
	}
	return budgetText(*t.Budget)
}
