package cli

import (
	"cmp"
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/api"
	"github.com/signalbox-ai/signalbox/client"
)

// maxPage is the largest page the director gives.
const maxPage = 1000

func (a *app) historyCmd() *cobra.Command {
	var opts client.HistoryOptions
	var limit int
	cmd := &cobra.Command{
		Use:   "history",
		Short: "List ended tasks, newest first",
		RunE: run(func(ctx context.Context, _ []string) error {
			if limit < 0 {
				return usage("--limit: want a number of tasks, or 0 for all, got %d", limit)
			}
			return a.with(ctx, func(c *client.Client) error { return a.history(ctx, c, opts, limit) })
		}),
	}
	f := cmd.Flags()
	f.StringVar(&opts.State, "state", "", "only this `state`: completed, failed, cancelled or timeout")
	f.StringVar(&opts.Reason, "reason", "", "only this `reason`, such as lost or exit_nonzero")
	f.StringVar(&opts.Agent, "agent", "", "only tasks of this `agent`")
	f.StringVar(&opts.Queue, "queue", "", "only tasks of this `queue`")
	f.StringVar(&opts.Source, "source", "", "only from this `source`: web, scheduler, cli, agent, user or api")
	f.StringVar(&opts.SourceJob, "source-job", "", "only of this `job`")
	f.StringVar(&opts.SessionID, "session", "", "only of this session `id`")
	f.StringVarP(&opts.Text, "text", "q", "", "only with this `text` in the prompt's first line")
	f.StringVar(&opts.Since, "since", "", "only ended since this `time`, RFC 3339 or an age such as 2h")
	f.StringVar(&opts.Until, "until", "", "only ended until this `time`, RFC 3339 or an age such as 2h")
	f.StringVar(&opts.Before, "before", "", "go on from this `cursor`, next of an earlier answer")
	f.IntVar(&limit, "limit", 20, "`number` of tasks, 0 for all")
	return cmd
}

func (a *app) history(ctx context.Context, c *client.Client, opts client.HistoryOptions, limit int) error {
	all := api.History{Tasks: []api.Task{}}
	for {
		opts.Limit = maxPage
		if limit > 0 {
			opts.Limit = min(maxPage, limit-len(all.Tasks))
		}
		page, err := c.History(ctx, opts)
		if err != nil {
			return err
		}
		all.Tasks, all.Next = append(all.Tasks, page.Tasks...), page.Next
		if page.Next == "" || page.Next == opts.Before || limit > 0 && len(all.Tasks) >= limit {
			break
		}
		opts.Before = page.Next
	}
	return a.print(all, func() error { return a.historyLines(all) })
}

func (a *app) historyLines(all api.History) error {
	for _, t := range all.Tasks {
		state := t.State
		if t.Reason != "" && t.Reason != t.State {
			state += ": " + t.Reason
		}
		text := t.PromptPreview
		if t.Tool != "" && t.State != "completed" && t.Message != "" {
			text += ": " + firstLine(t.Message) // a tool's task has no answer where it would stand
		}
		a.put("%s  %s [%s] %s%s", a.clockOf(t.EndedAt), clean(t.QueueID), a.paint(stateColour(t.State), clean(state)), ranBy(t), clean(text))
	}
	return a.pageEnd(len(all.Tasks), "No ended tasks.", all.Next)
}

// ranBy says where a task ran and for how long, if it did.
func ranBy(t api.Task) string {
	if t.Agent == "" || t.StartedAt == nil || t.EndedAt == nil {
		return ""
	}
	took := t.EndedAt.Sub(*t.StartedAt).Round(time.Second)
	if signalbox.IsExecutor(t.Agent) {
		return took.String() + ": "
	}
	return fmt.Sprintf("%s %s: ", clean(t.Agent), took)
}

func (a *app) activitiesCmd() *cobra.Command {
	var opts client.ActivitiesOptions
	cmd := &cobra.Command{
		Use:   "activities [ID]",
		Short: "List what was done, or one activity with the tree below it",
		Long: "List what was done, newest first. With ID, which is a task's, show it with all that its execution called\n" +
			"for, and so on.",
		RunE: a.ask(func(ctx context.Context, c *client.Client, args []string) error {
			if len(args) == 1 {
				return a.activityTree(ctx, c, args[0])
			}
			page, err := c.Activities(ctx, opts)
			if err != nil {
				return err
			}
			return a.print(page, func() error { return a.activityLines(page) })
		}),
		ValidArgsFunction: a.completeIDs(anyTask),
	}
	f := cmd.Flags()
	f.StringVar(&opts.Agent, "agent", "", "only activities of this `agent`")
	f.StringVar(&opts.Type, "type", "", "only this `type`: chat_start, task_start, schedule_start, agent_collaboration or tool_call")
	f.StringVar(&opts.State, "state", "", "only this `state`: queued, started, completed or failed")
	f.StringVar(&opts.Before, "before", "", "go on from this `cursor`, next of an earlier answer")
	f.IntVar(&opts.Limit, "limit", 50, "`number` of activities, 1 to 1000")
	return cmd
}

func (a *app) activityLines(page api.Activities) error {
	for _, x := range page.Activities {
		a.put("%s  %s", a.clock(x.CreatedAt), a.activityText(x))
	}
	return a.pageEnd(len(page.Activities), "Nothing was done.", page.Next)
}

func (a *app) activityTree(ctx context.Context, c *client.Client, part string) error {
	id, err := resolve(ctx, c, part)
	if err != nil {
		return err
	}
	root, err := c.Activity(ctx, id)
	if err != nil {
		return err
	}
	return a.print(root, func() error { return a.activityBranch(root, 0) })
}

func (a *app) activityBranch(x api.Activity, depth int) error {
	a.put("%s%s", strings.Repeat("  ", depth), a.activityText(x))
	for _, child := range x.Children {
		if err := a.activityBranch(child, depth+1); err != nil {
			return err
		}
	}
	return nil
}

// activityText is an activity in one line.
func (a *app) activityText(x api.Activity) string {
	parts := []string{clean(x.ID), clean(x.Type), "[" + a.paint(activityColour(x.State), clean(activityState(x))) + "]"}
	if x.AgentName != "" {
		parts = append(parts, clean(x.AgentName))
	}
	if x.DurationMS != nil {
		parts = append(parts, (time.Duration(*x.DurationMS) * time.Millisecond).Round(100*time.Millisecond).String())
	}
	if from := cmp.Or(x.SourceAgent, x.UserID); from != "" {
		parts = append(parts, "for "+clean(from))
	}
	if x.Details.Tool != "" {
		parts = append(parts, clean(x.Details.Tool))
	}
	if text := cmp.Or(x.Error, x.Details.Message); text != "" && (x.Error != "" || x.Details.Tool == "") {
		parts = append(parts, clean(text))
	}
	return strings.Join(parts, " ")
}

func activityState(x api.Activity) string {
	switch {
	case x.State == "queued" && x.Details.QueueStatus != "":
		return x.Details.QueueStatus
	case x.State == "failed" && x.Details.Reason != "":
		return "failed: " + x.Details.Reason
	}
	return x.State
}

func activityColour(state string) string {
	if state == "started" {
		return bold
	}
	return stateColour(state)
}
