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
	return &cobra.Command{
		Use:   "lane AGENT",
		Short: "Show what an agent runs and what waits for it",
		RunE: query(a, func(ctx context.Context, c *client.Client, args []string) (api.Lane, error) {
			return c.Lane(ctx, args[0])
		}, a.laneText),
		ValidArgsFunction: a.offer(agentNames),
	}
}

func (a *app) laneText(lane api.Lane) error {
	busy := "idle"
	if lane.IsBusy {
		busy = "busy"
	} else if len(lane.Executions) > 0 {
		busy = "has room"
	}
	a.put("%s: %s, %d of %s in use, %d waiting", clean(lane.AgentName), busy, len(lane.Executions),
		plural(lane.Slots, "slot", "slots"), lane.QueueLength)
	for _, part := range []struct {
		mark string
		rows []api.Execution
	}{{"running", lane.Executions}, {"bypass", lane.Bypass}} {
		for _, e := range part.rows {
			a.put("  %s %s%s", a.paint(bold, part.mark), a.executionText(e), a.since(e))
		}
	}
	for i, e := range lane.QueuedExecutions {
		a.put("  %d. %s", i+1, a.executionText(e))
	}
	if more := lane.QueueLength - len(lane.QueuedExecutions); more > 0 {
		a.note("%d more wait.", more)
	}
	for _, p := range lane.Paused {
		a.note("%s", a.pauseLine(p))
	}
	return nil
}

// executionText says what an execution is and whose.
func (a *app) executionText(e api.Execution) string {
	from := e.Source
	for _, who := range []string{e.SourceUserID, e.SourceUserEmail, e.SourceAgent} {
		if who != "" {
			from = e.Source + " " + who
		}
	}
	return fmt.Sprintf("%s [%s] %s", clean(e.ID), clean(from), clean(e.Message))
}

func (a *app) since(e api.Execution) string {
	if e.StartedAt == nil {
		return ""
	}
	return " (" + ago(a.io.Now().Sub(*e.StartedAt)) + ")"
}

func (a *app) sessionsCmd() *cobra.Command {
	var opts client.SessionsOptions
	var all bool
	cmd := &cobra.Command{
		Use:   "sessions",
		Short: "List the conversations of the agents, the last used first",
		Long: "List the conversations of the agents, the last used first. A chat goes on with the current one of its\n" +
			"agent, which is marked with a star.",
		RunE: query(a, func(ctx context.Context, c *client.Client, _ []string) (api.Sessions, error) {
			if all {
				opts.State = "all"
			}
			return c.Sessions(ctx, opts)
		}, a.sessionTable),
	}
	f := cmd.Flags()
	f.StringVar(&opts.Agent, "agent", "", "only conversations of this `agent`")
	f.StringVar(&opts.Source, "source", "", "only those begun from this `source`: web, scheduler, cli, agent, user or api")
	f.StringVar(&opts.Owner, "owner", "", "only those begun by this `owner`, such as user:ID or agent:NAME")
	f.BoolVar(&all, "all", false, "also those that were put away or are gone")
	f.StringVar(&opts.Before, "before", "", "go on from this `cursor`, next of an earlier answer")
	f.IntVar(&opts.Limit, "limit", 50, "`number` of conversations, 1 to 1000")
	cmd.AddCommand(
		a.sessionCmd("archive", "Put a conversation away: chats no longer go on with it", (*client.Client).ArchiveSession),
		a.sessionCmd("restore", "Make a conversation the current one of its agent again", (*client.Client).RestoreSession),
	)
	return cmd
}

func (a *app) sessionTable(page api.Sessions) error {
	if len(page.Sessions) == 0 {
		a.note("No conversations.")
		return nil
	}
	rows := [][]string{{"", "SESSION", "AGENT", "STATE", "TURNS", "USED", "BY", "TITLE"}}
	for _, s := range page.Sessions {
		mark := ""
		if s.Current {
			mark = "*"
		}
		rows = append(rows, []string{
			mark, s.SessionID, s.Agent, s.State, fmt.Sprint(s.Turns), ago(a.io.Now().Sub(s.LastUsed)) + " ago", cmp.Or(s.Owner, s.Source), s.Title,
		})
	}
	if err := a.table(rows); err != nil {
		return err
	}
	if page.Next != "" {
		a.note("There are more: --before %s", page.Next)
	}
	return nil
}

func (a *app) sessionCmd(verb, short string, call func(*client.Client, context.Context, string) (api.Session, error)) *cobra.Command {
	return &cobra.Command{
		Use:   verb + " ID",
		Short: short,
		RunE: query(a, func(ctx context.Context, c *client.Client, args []string) (api.Session, error) {
			return call(c, ctx, args[0])
		}, func(got api.Session) error {
			return a.say("Session %s of %s is %s", clean(got.SessionID), clean(got.Agent), clean(sessionState(got)))
		}),
		ValidArgsFunction: a.completeSessions(verb),
	}
}

func sessionState(s api.Session) string {
	if s.Current {
		return s.State + " and current"
	}
	return s.State
}

func sessionIDs(ctx context.Context, c *client.Client) []string {
	page, _ := c.Sessions(ctx, client.SessionsOptions{Limit: 50})
	var out []string
	for _, s := range page.Sessions {
		out = append(out, described(s.SessionID, s.Agent+" "+s.Title))
	}
	return out
}

// completeSessions offers the conversations that a verb is for.
func (a *app) completeSessions(verb string) completer {
	state := "active"
	if verb == "restore" {
		state = "all"
	}
	return a.offer(func(ctx context.Context, c *client.Client) []string {
		page, _ := c.Sessions(ctx, client.SessionsOptions{State: state, Limit: 50})
		var out []string
		for _, s := range page.Sessions {
			if verb == "archive" || !s.Current {
				out = append(out, described(s.SessionID, s.Agent+" "+s.Title))
			}
		}
		return out
	})
}

const queueArg = "QUEUE is work, pool:KIND, agent:NAME, or commands or calls for tools' tasks; without it all queues are meant."

func (a *app) pauseCmd() *cobra.Command {
	var req api.PauseRequest
	var length span
	var yes bool
	cmd := &cobra.Command{
		Use:   "pause [QUEUE]",
		Short: "Let a queue, or all, hand out nothing",
		Long: "Let a queue hand out nothing. What runs goes on, and tasks can still be submitted.\n" +
			"A pause of agent:NAME drains that agent: it takes from no queue, its isolated executions apart.\n" + queueArg,
		RunE: query(a, func(ctx context.Context, c *client.Client, args []string) (none api.Paused, err error) {
			req.Queue, req.Seconds = first(args), length.seconds()
			if err := a.knownQueue(ctx, c, req.Queue); err != nil {
				return none, err
			}
			if req.Queue == "" {
				if err := a.sure(ctx, yes, "Every queue is paused. Pause?"); err != nil {
					return none, err
				}
			}
			return c.Pause(ctx, req)
		}, a.pauses),
		ValidArgsFunction: a.offer(queueNames),
	}
	cmd.Flags().BoolVar(&yes, "yes", false, "do not ask, at a terminal, before all queues are paused")
	cmd.Flags().StringVar(&req.Reason, "reason", "", "`text` that others see")
	cmd.Flags().Var(&length, "for", "resume by itself after this long (default: when someone says so)")
	return cmd
}

func (a *app) resumeCmd() *cobra.Command {
	return &cobra.Command{
		Use:   "resume [QUEUE]",
		Short: "Let a queue, or all, go on",
		Long:  "Let a queue go on that was paused, or with no queue all that are.\n" + queueArg,
		RunE: query(a, func(ctx context.Context, c *client.Client, args []string) (api.Paused, error) {
			got, err := c.Resume(ctx, first(args))
			if err == nil && len(args) == 0 {
				return resumeEach(ctx, c, got)
			}
			return got, err
		}, a.pauses),
		ValidArgsFunction: a.offer(queueNames),
	}
}

// resumeEach resumes the single queues that are still paused.
func resumeEach(ctx context.Context, c *client.Client, left api.Paused) (api.Paused, error) {
	for _, p := range left.Paused {
		if p.Queue == "" {
			continue
		}
		var err error
		if left, err = c.Resume(ctx, p.Queue); err != nil {
			return left, err
		}
	}
	return left, nil
}

func first(args []string) string {
	if len(args) == 0 {
		return ""
	}
	return args[0]
}

// pauses lists the pauses that are in force.
func (a *app) pauses(got api.Paused) error {
	if len(got.Paused) == 0 {
		return a.say("Nothing is paused.")
	}
	for _, p := range got.Paused {
		a.put("%s", a.pauseLine(p))
	}
	return nil
}

func (a *app) pauseLine(p api.Pause) string {
	line := "Paused: all queues"
	if p.Queue != "" {
		line = "Paused: " + clean(p.Queue)
	}
	line += " since " + a.clock(p.Since)
	if p.Until != nil {
		line += " until " + a.clock(*p.Until)
	}
	if p.Reason != "" {
		line += " (" + clean(p.Reason) + ")"
	}
	return line
}
