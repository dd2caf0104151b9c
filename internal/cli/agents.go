package cli

import (
	"cmp"
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/signalbox-ai/signalbox/api"
	"github.com/signalbox-ai/signalbox/client"
)

func (a *app) agentsCmd() *cobra.Command {
	var watch bool
	cmd := &cobra.Command{
		Use:   "agents",
		Short: "List the agents and what they do",
		Long: "List the agents and what they do. Calls of tools that are tasks run in the director itself, which is no agent:\n" +
			"while there are any, a line below says how many. With --watch print a line whenever one does something else,\n" +
			"until Ctrl-C.",
		RunE: run(func(ctx context.Context, _ []string) error {
			if watch {
				return a.watchAgents(ctx)
			}
			return a.with(ctx, func(c *client.Client) error {
				all, err := c.AgentsAndExecutors(ctx)
				if err != nil {
					return err
				}
				return a.print(all, func() error {
					if err := a.agentTable(all.Agents); err != nil {
						return err
					}
					return a.executorLine(all.Executors)
				})
			})
		}),
	}
	cmd.Flags().BoolVar(&watch, "watch", false, "print what changes, as it changes; with --json an agent a line")
	cmd.AddCommand(a.removeAgentCmd())
	return cmd
}

func (a *app) removeAgentCmd() *cobra.Command {
	return a.removing(&cobra.Command{
		Use:   "remove NAME",
		Short: "Forget an agent",
		Long: "Forget an agent. One that runs a task, or that stands in the director's configuration, is not forgotten.\n" +
			"One whose process still runs registers itself again within seconds, and one that signalbox up started is back\n" +
			"when up is started again: to be rid of it end its process.",
		ValidArgsFunction: a.offer(agentNames),
	}, "The agent %s is forgotten. Remove it?", func(ctx context.Context, c *client.Client, name string) error {
		alive := false
		if agents, ok := agentsOf(ctx, c); ok {
			for _, g := range agents {
				alive = alive || g.Name == name && g.State != "down"
			}
		}
		if err := c.RemoveAgent(ctx, name); err != nil {
			return err
		}
		if alive {
			a.note("Its process still runs: it registers itself again within seconds, or with the next start of signalbox up that started it. End the process to be rid of it.")
		}
		return a.done("removed", name, nil)
	})
}

// removing makes the command that does something to one name, after a person at
// a terminal has said yes to the question.
func (a *app) removing(cmd *cobra.Command, question string, do func(ctx context.Context, c *client.Client, name string) error) *cobra.Command {
	var yes bool
	cmd.RunE = a.ask(func(ctx context.Context, c *client.Client, args []string) error {
		if err := a.sure(ctx, yes, fmt.Sprintf(question, args[0])); err != nil {
			return err
		}
		return do(ctx, c, args[0])
	})
	cmd.Flags().BoolVar(&yes, "yes", false, "do not ask, at a terminal, before it is done")
	return cmd
}

func (a *app) agentTable(agents []api.Agent) error {
	if len(agents) == 0 {
		a.note("No agents. Start one with signalbox agent, or signalbox up for all that are installed here.")
		return nil
	}
	rows := [][]string{{"NAME", "KIND", "STATE", "SLOTS", "BYPASS", "WAITING", "HEARD", "RUNNING"}}
	for _, g := range agents {
		heard := "never"
		if g.LastHeard != nil {
			heard = ago(a.io.Now().Sub(*g.LastHeard)) + " ago"
		}
		rows = append(rows, []string{
			g.Name, g.Kind, g.State, fmt.Sprintf("%d/%d", g.InUse, g.Slots), bypassText(g), fmt.Sprint(g.Waiting), heard, a.runningText(g),
		})
	}
	if err := a.table(rows); err != nil {
		return err
	}
	for _, g := range agents { // why one is given nothing
		if (g.State == "down" || g.State == "withheld" || g.State == "closed") && g.Message != "" {
			a.put("%s is %s: %s", clean(g.Name), clean(g.State), clean(g.Message))
		}
	}
	return nil
}

// executorLine says what the director's own executors do, if anything.
func (a *app) executorLine(executors []api.Agent) error {
	var parts []string
	for _, x := range executors {
		if x.InUse > 0 || x.Waiting > 0 {
			parts = append(parts, fmt.Sprintf("%s %d/%d running, %d waiting", clean(x.Kind), x.InUse, x.Slots, x.Waiting))
		}
	}
	if len(parts) == 0 {
		return nil
	}
	return a.say("Tool tasks: %s", strings.Join(parts, "; "))
}

// bypassText is how many isolated executions an agent runs, of how many.
func bypassText(g api.Agent) string {
	if g.IsolatedSlots == 0 && len(g.Isolated) == 0 {
		return "-"
	}
	return fmt.Sprintf("%d/%d", len(g.Isolated), g.IsolatedSlots)
}

// runningText says what an agent runs, or why it takes nothing.
func (a *app) runningText(g api.Agent) string {
	var parts []string
	var printed time.Time // or started, which is later for a run that has printed nothing
	if g.LastProgress != nil {
		printed = *g.LastProgress
	}
	for _, r := range g.Running {
		text := shortID(r.QueueID)
		if r.StartedAt != nil {
			if r.StartedAt.After(printed) {
				printed = *r.StartedAt
			}
			text += " (" + ago(a.io.Now().Sub(*r.StartedAt)) + ")"
		}
		if r.Withheld {
			text += " lost, not confirmed"
		}
		if r.Note != "" {
			text += ": " + r.Note
		}
		parts = append(parts, text)
	}
	if still := a.io.Now().Sub(printed); g.State == "working" && !printed.IsZero() && still >= time.Minute {
		parts = append(parts, "printed nothing for "+ago(still)) // the second clock: it answers, but does it get on?
	}
	for _, r := range g.Isolated {
		text := shortID(r.QueueID) + " bypass"
		if r.StartedAt != nil {
			text += " (" + ago(a.io.Now().Sub(*r.StartedAt)) + ")"
		}
		parts = append(parts, text)
	}
	for _, t := range g.Terminals {
		parts = append(parts, "terminal of "+t.By+" ("+ago(a.io.Now().Sub(t.Since))+")")
	}
	if g.Message != "" {
		parts = append(parts, g.Message)
	}
	return strings.Join(parts, ", ")
}

func (a *app) releaseCmd() *cobra.Command {
	return a.removing(&cobra.Command{
		Use:   "release AGENT",
		Short: "Take an agent's slots away from what holds them",
		Long: "Take an agent's slots away from what holds them: for an agent that is stuck. The tasks in them end as\n" +
			"failed (released), what they still report is discarded, and the next tasks start.",
		ValidArgsFunction: a.offer(agentNames),
	}, "What agent %s runs ends as failed. Release its slots?", func(ctx context.Context, c *client.Client, name string) error {
		got, err := c.ReleaseLane(ctx, name)
		if err != nil {
			return err
		}
		return a.print(got, func() error { return a.released(got) })
	})
}

func (a *app) released(got api.Released) error {
	held := "nothing held its slots"
	if len(got.QueueIDs) > 0 {
		held = "from " + strings.Join(got.QueueIDs, ", ")
	} else if got.WasRunning {
		held = "it was running"
	}
	if got.Warning != "" {
		a.note("Warning: %s", got.Warning)
	}
	return a.say("Released: %s (%s)", clean(got.Agent), clean(held))
}

func (a *app) clearCmd() *cobra.Command {
	return a.removing(&cobra.Command{
		Use:   "clear AGENT",
		Short: "Cancel the waiting tasks that are addressed to an agent",
		Long:  "Cancel the waiting tasks that are addressed to an agent. Those that any agent may take are not its own and stay.",

		ValidArgsFunction: a.offer(agentNames),
	}, "The tasks that wait for agent %s are cancelled. Clear?", func(ctx context.Context, c *client.Client, name string) error {
		got, err := c.ClearLane(ctx, name)
		if err != nil {
			return err
		}
		return a.print(got, func() error {
			return a.say("Cleared: %s (%s cancelled)", clean(got.Agent), plural(got.ClearedCount, "task", "tasks"))
		})
	})
}

func (a *app) directorsCmd() *cobra.Command {
	return &cobra.Command{
		Use:   "directors",
		Short: "List the directors over the store, and the agents of each",
		Long: "List the directors over the store: which of them live, and the agents that each dispatches to. Any of them\n" +
			"answers for any task; the one that answered is marked with a star. One that died is shown for a day.",
		RunE: query(a, func(ctx context.Context, c *client.Client, _ []string) (api.Directors, error) {
			all, err := c.Directors(ctx)
			return api.Directors{Directors: all}, err
		}, a.directorTable),
	}
}

// shownAgents bounds the names of agents in a line of the table.
const shownAgents = 5

func (a *app) directorTable(all api.Directors) error {
	rows := [][]string{{"INSTANCE", "STATE", "VERSION", "UP FOR", "URL", "AGENTS"}}
	for _, d := range all.Directors {
		name, state, up := d.Instance, "alive", ago(a.io.Now().Sub(d.StartedAt))
		if d.Draining {
			state = "draining"
		}
		if d.This {
			name += " *"
		}
		if !d.Alive {
			state, up = "gone", "-"
			if d.LeaseExpires != nil {
				state = "gone for " + ago(a.io.Now().Sub(*d.LeaseExpires))
			}
		}
		agents := strings.Join(d.Agents[:min(len(d.Agents), shownAgents)], ", ")
		if more := len(d.Agents) - shownAgents; more > 0 {
			agents += fmt.Sprintf(" and %d more", more)
		}
		rows = append(rows, []string{name, state, d.Version, up, d.URL, cmp.Or(agents, "-")})
	}
	return a.table(rows)
}
