package cli

import (
	"cmp"
	"context"
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/spf13/cobra"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/api"
	"github.com/signalbox-ai/signalbox/client"
)

func (a *app) usageCmd() *cobra.Command {
	var opts client.UsageOptions
	cmd := &cobra.Command{
		Use:   "usage",
		Short: "Show what runs used, in tokens and money",
		Long: `Show what runs used, in tokens and money, by day, agent, schedule, user or model. Only runs whose agents report
tokens or costs count. A run counts on the UTC day on which it ended; a task that ran twice has two runs. The sums are
kept for 400 days, even if the tasks are deleted earlier.`,
		Example: `  signalbox usage
  signalbox usage --by agent --from 2026-01-01 --to 2026-01-31
  signalbox usage --by model --schedule nightly --json`,
		PreRunE: func(*cobra.Command, []string) error {
			for flag, day := range map[string]string{"from": opts.From, "to": opts.To} {
				if _, err := signalbox.ParseDay(day); day != "" && err != nil {
					return usage("--%s: %v", flag, err)
				}
			}
			return nil
		},
	}
	f := cmd.Flags()
	f.Var(newChoice(&opts.By, "day", "day", "agent", "schedule", "user", "model"), "by", "one row for each day, agent, schedule, user or model")
	f.StringVar(&opts.From, "from", "", "first `day` in UTC, such as 2026-01-31 (default: 29 days before the last)")
	f.StringVar(&opts.To, "to", "", "last `day` (default: today)")
	f.StringVar(&opts.Agent, "agent", "", "only runs of this `agent`")
	f.StringVar(&opts.Schedule, "schedule", "", "only runs of the tasks of this `schedule`, by name")
	f.StringVar(&opts.User, "user", "", "only runs of the tasks of this `owner`: an e-mail address, or a key such as user:ann")
	f.StringVar(&opts.Model, "model", "", "only runs of this `model`")
	return query(a, cmd, func(ctx context.Context, c *client.Client, _ []string) (api.Usage, error) { return c.Usage(ctx, opts) }, a.usageText)
}

func (a *app) usageText(got api.Usage) {
	if len(got.Rows) == 0 {
		a.note("No usage from %s to %s.", got.From, got.To)
		a.note("Runs are counted when their agents report tokens or costs: claude, codex, opencode and llm do, command does not.")
		return
	}
	rows := [][]string{{strings.ToUpper(got.By), "RUNS", "FAILED", "TOKENS IN", "TOKENS OUT", "COST USD", "TIME"}}
	for _, row := range got.Rows {
		rows = append(rows, usageRow(usageName(got.By, row), row.UsageSums))
	}
	rows = append(rows, usageRow("total", got.Total))
	a.table(rightAligned(rows))
}

// usageName names what a row sums up.
func usageName(by string, row api.UsageRow) string {
	switch name := cmp.Or(row.Email, row.Name); {
	case name != "":
		return name
	case by == "schedule":
		return "no schedule"
	case by == "user":
		return "no user"
	}
	return "no user"
}

func usageRow(name string, s api.UsageSums) []string {
	return []string{
		name, fmt.Sprint(s.Runs), fmt.Sprint(s.Failed), fmt.Sprint(s.InputTokens), fmt.Sprint(s.OutputTokens), usd(s.CostUSD),
		ago(time.Duration(s.RunSeconds * float64(time.Second))),
	}
}

// usd formats an amount of US dollars.
func usd(amount float64) string { return fmt.Sprintf("%.4f", amount) }

// rightAligned aligns all columns but the first to the right.
func rightAligned(rows [][]string) [][]string {
	for i := 1; i < len(rows[0]); i++ {
		width := 0
		for _, row := range rows {
			width = max(width, utf8.RuneCountInString(row[i]))
		}
		for _, row := range rows {
			row[i] = strings.Repeat(" ", width-utf8.RuneCountInString(row[i])) + row[i]
		}
	}
	return rows
}

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
