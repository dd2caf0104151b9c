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
