package cli

import (
	"cmp"
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/signalbox-ai/signalbox/api"
	"github.com/signalbox-ai/signalbox/client"
)

func (a *app) laneCmd() *cobra.Command {
	return query(a, &cobra.Command{Use: "lane AGENT", Short: "Show what an agent runs and what waits for it", ValidArgsFunction: a.completeArg(agentNames)},
		oneArg((*client.Client).Lane), func(lane api.Lane) {
			busy := "idle"
			if lane.IsBusy {
				busy = "busy"
			} else if len(lane.Executions) > 0 {
				busy = "has room"
			}
			a.say("%s: %s, %d of %s in use, %d waiting", clean(lane.AgentName), busy, len(lane.Executions),
				plural(lane.Slots, "slot", "slots"), lane.QueueLength)
			for _, e := range lane.Executions {
				a.say("  %s %s%s", a.paint(bold, "running"), executionText(e), a.elapsed(e.StartedAt))
			}
			for _, e := range lane.Bypass {
				a.say("  %s %s%s", a.paint(bold, "bypass"), executionText(e), a.elapsed(e.StartedAt))
			}
			for i, e := range lane.QueuedExecutions {
				a.say("  %d. %s", i+1, executionText(e))
			}
			if more := lane.QueueLength - len(lane.QueuedExecutions); more > 0 {
				a.note("%d more wait.", more)
			}
			for _, p := range lane.Paused {
				a.note("%s", a.pauseLine(p))
			}
		})
}

// executionText describes an execution and who submitted it.
func executionText(e api.Execution) string {
	who := cmp.Or(e.SourceAgent, e.SourceUserEmail, e.SourceUserID)
	return fmt.Sprintf("%s [%s%s] %s", clean(e.ID), clean(e.Source), opt(" %s", who), clean(e.Message))
}

func (a *app) sessionsCmd() *cobra.Command {
	var opts client.SessionsOptions
	var all bool
	cmd := &cobra.Command{
		Use:   "sessions",
		Short: "List the conversations of the agents, last used first",
		Long: "List the conversations of the agents, last used first. A chat continues the current conversation of its agent,\n" +
			"which is marked with a star.",
	}
	f := cmd.Flags()
	f.StringVar(&opts.Agent, "agent", "", "only conversations of this `agent`")
	f.StringVar(&opts.Source, "source", "", "only those started from this `source`: web, scheduler, cli, agent, user or api")
	f.StringVar(&opts.Owner, "owner", "", "only those started by this `owner`, such as user:ID or agent:NAME")
	f.BoolVar(&all, "all", false, "also those that are archived or gone")
	pageFlags(f, &opts.Before, &opts.Limit, "conversations")
	cmd.AddCommand(
		a.sessionCmd("archive ID", "Archive a conversation: chats no longer continue it", a.completeArg(sessionIDs("active", true)), (*client.Client).ArchiveSession),
		a.sessionCmd("restore ID", "Make a conversation the current one of its agent again", a.completeArg(sessionIDs("all", false)), (*client.Client).RestoreSession),
	)
	return query(a, cmd, func(ctx context.Context, c *client.Client, _ []string) (api.Sessions, error) {
		if all {
			opts.State = "all"
		}
		return c.Sessions(ctx, opts)
	}, func(page api.Sessions) {
		list(a, page.Sessions, "No conversations.", []string{"", "SESSION", "AGENT", "STATE", "TURNS", "USED", "BY", "TITLE"}, func(s *api.Session) []string {
			mark := ""
			if s.Current {
				mark = "*"
			}
			return []string{mark, s.SessionID, s.Agent, s.State, fmt.Sprint(s.Turns), a.since(s.LastUsed) + " ago", cmp.Or(s.Owner, s.Source), s.Title}
		})
		a.pageEnd(page.Next)
	})
}

func (a *app) sessionCmd(use, short string, complete completer, do func(*client.Client, context.Context, string) (api.Session, error)) *cobra.Command {
	return action(a, &cobra.Command{Use: use, Short: short, ValidArgsFunction: complete}, "", oneArg(do), func(got api.Session) {
		state := got.State
		if got.Current {
			state += " and current"
		}
		a.say("Session %s of %s is %s", clean(got.SessionID), clean(got.Agent), clean(state))
	})
}

// sessionIDs completes conversations in a state, with or without the agents' current
// ones.
func sessionIDs(state string, current bool) func(context.Context, *client.Client) []string {
	return func(ctx context.Context, c *client.Client) []string {
		page, _ := c.Sessions(ctx, client.SessionsOptions{State: state, Limit: 50})
		return completions(page.Sessions, func(s *api.Session) (string, string) {
			if s.Current && !current {
				return "", ""
			}
			return s.SessionID, s.Agent + " " + s.Title
		})
	}
}

const queueArg = "QUEUE is work, pool:KIND, agent:NAME, or commands or calls for tool tasks; without QUEUE the command applies to all."

func (a *app) pauseCmd() *cobra.Command {
	var req api.PauseRequest
	var length durationFlag
	cmd := &cobra.Command{
		Use:   "pause [QUEUE]",
		Short: "Pause a queue, or all of them",
		Long: "Pause a queue: its tasks do not start. Running tasks go on, and tasks can still be submitted.\n" +
			"Pausing agent:NAME drains that agent: it takes tasks from no queue, except for isolated executions.\n" + queueArg,
		ValidArgsFunction: a.completeArg(queueNames),
	}
	yes := cmd.Flags().Bool("yes", false, "do not ask for confirmation at a terminal before all queues are paused")
	cmd.Flags().StringVar(&req.Reason, "reason", "", "`text` that others see")
	cmd.Flags().Var(&length, "for", "resume automatically after this long (default: when someone resumes it)")
	return action(a, cmd, "", func(ctx context.Context, c *client.Client, args []string) (none api.Paused, err error) {
		req.Queue, req.Seconds = firstArg(args), length.seconds()
		if err := a.checkQueue(ctx, c, req.Queue); err != nil {
			return none, err
		}
		if req.Queue == "" {
			if err := a.confirmAtTerminal(ctx, *yes, "Pause all queues?"); err != nil {
				return none, err
			}
		}
		return c.Pause(ctx, req)
	}, a.pausesText)
}

func (a *app) resumeCmd() *cobra.Command {
	return action(a, &cobra.Command{
		Use:               "resume [QUEUE]",
		Short:             "Resume a paused queue, or all of them",
		Long:              "Resume a paused queue, or all that are paused.\n" + queueArg,
		ValidArgsFunction: a.completeArg(queueNames),
	}, "", func(ctx context.Context, c *client.Client, args []string) (api.Paused, error) {
		got, err := c.Resume(ctx, firstArg(args))
		for _, p := range got.Paused { // without a queue, also resume the pauses of single queues
			if err == nil && len(args) == 0 && p.Queue != "" {
				got, err = c.Resume(ctx, p.Queue)
			}
		}
		return got, err
	}, a.pausesText)
}

func firstArg(args []string) string {
	if len(args) == 0 {
		return ""
	}
	return args[0]
}

// pausesText prints the active pauses.
func (a *app) pausesText(got api.Paused) {
	if len(got.Paused) == 0 {
		a.say("Nothing is paused.")
	}
	for _, p := range got.Paused {
		a.say("%s", a.pauseLine(p))
	}
}

func (a *app) pauseLine(p api.Pause) string {
	return "Paused: " + cmp.Or(clean(p.Queue), "all queues") + " since " + a.clock(p.Since) + opt(" until %s", a.formatTimePtr(p.Until)) + opt(" (%s)", p.Reason)
}
