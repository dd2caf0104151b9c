package cli

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/signalbox-ai/signalbox/api"
	"github.com/signalbox-ai/signalbox/client"
)

func (a *app) agentsCmd() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "agents",
		Short: "List the agents and what they do",
		Long: "List the agents and what they do. Tool tasks run in the director itself, which is not an agent: a line below the\n" +
			"list counts them if there are any. With --watch print a line whenever an agent's state changes,\n" +
			"until Ctrl-C.",
	}
	cmd.AddCommand(a.removeAgentCmd())
	watch := cmd.Flags().Bool("watch", false, "print changes as they happen; with --json one agent per line")
	return a.follow(query(a, cmd, noArg((*client.Client).AgentsAndExecutors), a.agentTable), watch, a.watchAgents)
}

func (a *app) removeAgentCmd() *cobra.Command {
	return removal(a, &cobra.Command{
		Use:   "remove NAME",
		Short: "Remove an agent",
		Long: "Remove an agent. An agent that runs a task, or that the director's configuration lists, cannot be removed.\n" +
			"An agent whose process still runs registers itself again within seconds, and one that signalbox up started is back\n" +
			"when up starts again. To remove it for good, end its process first.",
		ValidArgsFunction: a.completeArg(agentNames),
	}, "Remove the agent %s?", "removed", func(c *client.Client, ctx context.Context, name string) error {
		agents, _ := listAgents(ctx, c)
		alive := slices.ContainsFunc(agents, func(g api.Agent) bool { return g.Name == name && g.State != "down" })
		err := c.RemoveAgent(ctx, name)
		if err == nil && alive {
			a.note("Its process still runs: it registers itself again within seconds, or when signalbox up, if that started it, starts again. End the process to remove it for good.")
		}
		return err
	})
}

func (a *app) agentTable(all api.Agents) {
	list(a, all.Agents, "No agents. Start one with signalbox agent, or one for each CLI installed here with signalbox up.",
		[]string{"NAME", "KIND", "STATE", "SLOTS", "BYPASS", "WAITING", "HEARD", "RUNNING"}, func(g *api.Agent) []string {
			return []string{g.Name, g.Kind, g.State, fmt.Sprintf("%d/%d", g.InUse, g.Slots), bypassText(g), fmt.Sprint(g.Waiting),
				a.ageOr(g.LastHeard, "never"), a.runningText(*g)}
		})
	for _, g := range all.Agents { // why it gets no tasks
		if (g.State == "down" || g.State == "withheld" || g.State == "closed") && g.Message != "" {
			text := clean(g.Name) + " is " + clean(g.State) + ": " + clean(g.Message)
			if g.Closed != nil && g.State == "closed" { // the text already says so
				text = capitalize(clean(g.Message))
			}
			a.say("%s", text)
		}
	}
	var busy []string // the director's own executors
	for _, x := range all.Executors {
		if x.InUse > 0 || x.Waiting > 0 {
			busy = append(busy, fmt.Sprintf("%s %d/%d running, %d waiting", clean(x.Kind), x.InUse, x.Slots, x.Waiting))
		}
	}
	if len(busy) > 0 {
		a.say("Tool tasks: %s", strings.Join(busy, "; "))
	}
}

// bypassText is the number of isolated executions of an agent, and the limit.
func bypassText(g *api.Agent) string {
	if g.IsolatedSlots == 0 && len(g.Isolated) == 0 {
		return "-"
	}
	return fmt.Sprintf("%d/%d", len(g.Isolated), g.IsolatedSlots)
}

// runningText describes what an agent runs, or why it takes no tasks.
func (a *app) runningText(g api.Agent) string {
	var parts []string
	var printed time.Time // the last output, or a later start
	if g.LastProgress != nil {
		printed = *g.LastProgress
	}
	for _, r := range g.Running {
		if r.StartedAt != nil && r.StartedAt.After(printed) {
			printed = *r.StartedAt
		}
		text := shortID(r.QueueID) + a.elapsed(r.StartedAt)
		if r.Withheld {
			text += " lost, not confirmed"
		}
		parts = append(parts, text+opt(": %s", r.Note))
	}
	if still := a.io.Now().Sub(printed); g.State == "working" && !printed.IsZero() && still >= time.Minute {
		parts = append(parts, "printed nothing for "+ago(still)) // alive, but possibly stuck
	}
	for _, r := range g.Isolated {
		parts = append(parts, shortID(r.QueueID)+" bypass"+a.elapsed(r.StartedAt))
	}
	for _, t := range g.Terminals {
		parts = append(parts, "terminal of "+t.By+a.elapsed(&t.Since))
	}
	if g.Message != "" {
		parts = append(parts, g.Message)
	}
	return strings.Join(parts, ", ")
}

func (a *app) releaseCmd() *cobra.Command {
	return action(a, &cobra.Command{
		Use:   "release AGENT",
		Short: "Free the slots of an agent that is stuck",
		Long: "Free the slots of an agent that is stuck. The tasks that hold them end as failed (released), later reports\n" +
			"about them are discarded, and the next tasks start.",
		ValidArgsFunction: a.completeArg(agentNames),
	}, "The tasks that agent %s runs end as failed. Release its slots?", oneArg((*client.Client).ReleaseLane), a.released)
}

func (a *app) released(got api.Released) {
	held := "nothing held its slots"
	if len(got.QueueIDs) > 0 {
		held = "from " + strings.Join(got.QueueIDs, ", ")
	} else if got.WasRunning {
		held = "it was running"
	}
	if got.Warning != "" {
		a.note("Warning: %s", got.Warning)
	}
	a.say("Released: %s (%s)", clean(got.Agent), clean(held))
}

func (a *app) clearCmd() *cobra.Command {
	return action(a, &cobra.Command{
		Use:   "clear AGENT",
		Short: "Cancel the waiting tasks that are addressed to an agent",
		Long:  "Cancel the waiting tasks that are addressed to an agent. Tasks that any agent may take stay.",

		ValidArgsFunction: a.completeArg(agentNames),
	}, "The tasks that wait for agent %s are cancelled. Clear?", oneArg((*client.Client).ClearLane), func(got api.LaneCleared) {
		a.say("Cleared: %s (%s cancelled)", clean(got.Agent), plural(got.ClearedCount, "task", "tasks"))
	})
}

func (a *app) directorsCmd() *cobra.Command {
	return query(a, &cobra.Command{
		Use:   "directors",
		Short: "List the directors that share the store, and the agents of each",
		Long: "List the directors that share the store: which of them live, and the agents that each dispatches to. Any of\n" +
			"them answers for any task; the one that answered is marked with a star. A dead one is listed for a day.",
	}, func(ctx context.Context, c *client.Client, _ []string) (api.Directors, error) {
		all, err := c.Directors(ctx)
		return api.Directors{Directors: all}, err
	}, func(all api.Directors) {
		list(a, all.Directors, "", []string{"INSTANCE", "STATE", "VERSION", "UP FOR", "URL", "AGENTS"}, a.directorRow)
	})
}

// shownAgents limits the names of agents in a row.
const shownAgents = 5

func (a *app) directorRow(d *api.Director) []string {
	name, state, up := d.Instance, "alive", a.since(d.StartedAt)
	if d.Draining {
		state = "draining"
	}
	if d.This {
		name += " *"
	}
	if !d.Alive {
		state, up = "gone", "-"
		if d.LeaseExpires != nil {
			state = "gone for " + a.since(*d.LeaseExpires)
		}
	}
	agents := strings.Join(d.Agents[:min(len(d.Agents), shownAgents)], ", ")
	if more := len(d.Agents) - shownAgents; more > 0 {
		agents += fmt.Sprintf(" and %d more", more)
	}
	return []string{name, state, d.Version, up, d.URL, cmp.Or(agents, "-")}
}
