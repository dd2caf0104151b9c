package cli

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/signalbox-ai/signalbox/api"
	"github.com/signalbox-ai/signalbox/client"
)

func (a *app) accountsCmd() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "accounts",
		Short: "Show the accounts that agents use, and the limits of their providers",
		Long: `Show the accounts that agents use, with the limits of their providers and the tasks that wait for them. An account is
one login or key at one provider. A run that meets its limit is parked, and the account is closed until the limit
resets. Then one task goes first, and the others follow once the provider has answered it.`,
		Example: `  signalbox accounts
  signalbox accounts close claude-3f0c1d2e4b --until 2h --reason "left for the release"
  signalbox accounts open claude-3f0c1d2e4b`,
	}
	cmd.AddCommand(a.openAccountCmd(), a.closeAccountCmd(), a.removeAccountCmd())
	return query(a, cmd, noArg((*client.Client).Accounts), func(all api.Accounts) {
		list(a, all.Accounts, "No accounts: no connected agent has reported one. Agents of kind claude, codex, opencode and llm do.",
			[]string{"ACCOUNT", "STATE", "UNTIL", "USED", "AGENTS", "WAITING", "PARKED", "LOGIN"}, func(v *api.Account) []string {
				return []string{v.Name, v.State, a.formatTimePtr(v.Until), windowsText(v.Windows), strings.Join(v.Agents, ","),
					fmt.Sprint(v.Waiting), fmt.Sprint(v.Parked), v.Login}
			})
	})
}

// windowsText is how much of each limit is used, such as "five_hour 80%".
func windowsText(windows []api.AccountWindow) string {
	parts := make([]string, len(windows))
	for i, w := range windows {
		parts[i] = fmt.Sprintf("%s %.0f%%", w.Name, w.UsedPercent)
	}
	return strings.Join(parts, ", ")
}

func (a *app) openAccountCmd() *cobra.Command {
	return action(a, &cobra.Command{
		Use:               "open NAME",
		Short:             "Open an account now",
		Long:              "Open an account now, without waiting for its limit to reset. The next run that meets the limit closes it again.",
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: a.completeArg(accountNames),
	}, "", oneArg((*client.Client).OpenAccount), a.accountText)
}

func (a *app) closeAccountCmd() *cobra.Command {
	var until, reason string
	cmd := &cobra.Command{
		Use:               "close NAME",
		Short:             "Stop the agents of an account from claiming tasks",
		Long:              "Stop the agents of an account from claiming tasks. Runs go on, and tasks wait in their order.",
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: a.completeArg(accountNames),
	}
	cmd.Flags().StringVar(&until, "until", "", "`time`, or a duration from now such as 2h, at which the account is tried again (default: when someone opens it)")
	cmd.Flags().StringVar(&reason, "reason", "", "`text` that others see")
	return action(a, cmd, "", func(ctx context.Context, c *client.Client, args []string) (none api.Account, err error) {
		req := api.AccountClose{Reason: reason}
		if until != "" {
			at, err := parseTime(until, a.io.Now())
			if err != nil {
				return none, usage("--until: %v", err)
			}
			req.Until = &at
		}
		return c.CloseAccount(ctx, args[0], req)
	}, a.accountText)
}

func (a *app) removeAccountCmd() *cobra.Command {
	return removal(a, &cobra.Command{
		Use:   "remove NAME",
		Short: "Remove an account that no agent uses any more",
		Long: "Remove an account that no agent uses any more and at which no task is parked. An open account that no agent\n" +
			"reports for 30 days is removed automatically.",
		ValidArgsFunction: a.completeArg(accountNames),
	}, "Remove the account %s?", "removed", func(c *client.Client, ctx context.Context, name string) error {
		return c.RemoveAccount(ctx, name)
	})
}

func (a *app) accountText(v api.Account) { a.say("%s.", capitalize(clean(v.Text))) }

func accountNames(ctx context.Context, c *client.Client) []string {
	all, _ := c.Accounts(ctx)
	return completions(all.Accounts, func(v *api.Account) (string, string) { return clean(v.Name), v.State })
}

func (a *app) unparkCmd() *cobra.Command {
	return action(a, &cobra.Command{
		Use:   "unpark ID",
		Short: "Let a task run although its account is closed or a budget is used up",
		Long: "Let a task run although its agent's account is not open or a daily budget is used up. The task is parked at a\n" +
			"limit or waits for the account or the budget. It moves to the front of its queue, and is parked again if it meets\n" +
			"the limit. The account stays as it is, and the task's own budget still holds.",
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: a.completeIDs(liveTask),
	}, "", taskArg((*client.Client).Unpark), a.taskText)
}

func (a *app) gatesCmd() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "gates",
		Short: "Show which gates are closed, and what waits there",
		Long: `Show which gates are closed, until when, and what waits there: accounts at their provider's limit or signed out,
		agents that failed, budgets that are used up, tool queues that their upstream closed, and times until which tasks are
		parked. Gates that need a person come first.`,
	}
	return query(a, cmd, noArg((*client.Client).Gates), func(all api.Gates) {
		list(a, all.Gates, "Nothing is closed.",
			[]string{"KIND", "NAME", "STATE", "UNTIL", "WAITING", "PARKED", "WHY"}, func(g *api.ClosedGate) []string {
				return []string{g.Kind, g.Name, g.State, a.formatTimePtr(g.Until), fmt.Sprint(g.Waiting), fmt.Sprint(g.Parked), g.Text}
			})
		for i := range all.Gates {
			a.note("%s: %s.", capitalize(strings.TrimSpace(clean(all.Gates[i].Kind+" "+all.Gates[i].Name))), clean(all.Gates[i].Cure))
		}
	})
}
