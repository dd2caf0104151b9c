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
	cmd.Flags().Float64Var(&f.usd, "budget", 0, "`USD` that its runs may spend together (default, and the most without the right admin: budgets.task of the director)")
	cmd.Flags().Int64Var(&f.tokens, "budget-tokens", 0, "`tokens`, input and output, that its runs may use together (likewise)")
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
		Short: "Show the budgets, and what has been spent of them today",
		Long: `Show the budgets of the day, users, agents and accounts, and what has been spent of them today, a UTC day: by the
runs that ended today, and by those in flight as far as they have reported. Of a budget that is used up nothing is
started until the day is over, and its runs are stopped with the reason budget. The section budgets of the
director's configuration has them.`,
		Example: `  signalbox budgets
  signalbox budgets --json`,
	}
	return query(a, cmd, noArg((*client.Client).Budgets), func(all api.Budgets) {
		if all.Task != nil {
			a.say("Each task that brings none of its own: %s", budgetText(*all.Task))
		}
		list(a, all.Budgets, "No budgets of a day: the section budgets of the director's configuration has them.",
			[]string{"SCOPE", "NAME", "SPENT", "BUDGET", "STATE", "UNTIL"}, func(v *api.BudgetState) []string {
				return []string{v.Scope, v.Name, spentText(v), budgetText(v.Budget), strings.ReplaceAll(v.State, "_", " "), a.formatTimePtr(v.Until)}
			})
	})
}

func budgetText(b api.Budget) string {
	parsed, _ := signalbox.ParseBudget("budget", b.USD, b.Tokens) // else it is of another release: no bound
	return parsed.String()
}

// spentText has the figures that are bounded.
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

// taskBudget is what a task may spend; "" for no bound.
func taskBudget(t *api.Task) string {
	if t.Budget == nil {
		return ""
	}
	return budgetText(*t.Budget)
}
