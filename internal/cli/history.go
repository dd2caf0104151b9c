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

// maxPage is the director's largest page size.
const maxPage = 1000

func (a *app) historyCmd() *cobra.Command {
	var opts client.HistoryOptions
	var limit int
	cmd := &cobra.Command{
		Use:     "history",
		Short:   "List ended tasks, newest first",
		PreRunE: checkLimit(&limit),
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
	f.StringVar(&opts.Before, "before", "", "continue from this `cursor`: next in an earlier answer")
	f.IntVar(&limit, "limit", 20, "`number` of tasks, 0 for all")
	return query(a, cmd, func(ctx context.Context, c *client.Client, _ []string) (api.History, error) {
		all := api.History{Tasks: []api.Task{}}
		err := readPages(limit, func(want int, after string) (int, string, error) {
			opts.Limit, opts.Before = want, cmp.Or(after, opts.Before)
			page, err := c.History(ctx, opts)
			all.Tasks, all.Next = append(all.Tasks, page.Tasks...), page.Next
			return len(all.Tasks), page.Next, err
		})
		return all, err
	}, func(all api.History) {
		lines(a, all.Tasks, "No ended tasks.", all.Next, func(t api.Task) string {
			text := t.PromptPreview
			if t.Tool != "" && t.State != "completed" && t.Message != "" {
				text += ": " + firstLine(t.Message) // a tool task's error is shown nowhere else
			}
			return fmt.Sprintf("%s  %s [%s] %s%s", a.formatTimePtr(t.EndedAt), clean(t.QueueID), a.paint(stateColour(t.State), clean(stateWithReason(t.State, t.Reason))), ranBy(t), clean(text))
		})
	})
}

// checkLimit rejects a negative --limit.
func checkLimit(limit *int) runFunc {
	return func(*cobra.Command, []string) error {
		if *limit < 0 {
			return usage("--limit: want a number of tasks, or 0 for all, got %d", *limit)
		}
		return nil
	}
}

// readPages reads pages until there are limit tasks, or all if limit is 0. read gets
// the page size and the cursor, and returns the number of tasks so far.
func readPages(limit int, read func(want int, after string) (have int, next string, err error)) error {
	for have, after := 0, ""; ; {
		want := maxPage
		if limit > 0 {
			want = min(maxPage, limit-have)
		}
		now, next, err := read(want, after)
		if err != nil || next == "" || next == after || limit > 0 && now >= limit {
			return err
		}
		have, after = now, next
	}
}

// stateWithReason appends the reason to a state, unless they are equal.
func stateWithReason(state, reason string) string {
	if reason == "" || reason == state {
		return state
	}
	return state + ": " + reason
}

// ranBy returns the agent of a task and the duration of its run, if it ran.
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
		Short: "List the activities, or show one with the tree below it",
		Long: "List the activities, newest first. With the ID of a task, show its activity with all activities that its\n" +
			"execution started, and theirs in turn.",
		RunE: a.ask(func(ctx context.Context, c *client.Client, args []string) error {
			if len(args) == 1 {
				return printed(a, func(root api.Activity) { a.activityBranch(root, 0) })(taskArg((*client.Client).Activity)(ctx, c, args))
			}
			return printed(a, func(page api.Activities) {
				lines(a, page.Activities, "No activities.", page.Next, func(x api.Activity) string { return a.clock(x.CreatedAt) + "  " + a.activityText(x) })
			})(c.Activities(ctx, opts))
		}),
		ValidArgsFunction: a.completeIDs(anyTask),
	}
	f := cmd.Flags()
	f.StringVar(&opts.Agent, "agent", "", "only activities of this `agent`")
	f.StringVar(&opts.Type, "type", "", "only this `type`: chat_start, task_start, schedule_start, agent_collaboration or tool_call")
	f.StringVar(&opts.State, "state", "", "only this `state`: queued, started, completed or failed")
	pageFlags(f, &opts.Before, &opts.Limit, "activities")
	return cmd
}

func (a *app) activityBranch(x api.Activity, depth int) {
	a.say("%s%s", strings.Repeat("  ", depth), a.activityText(x))
	for _, child := range x.Children {
		a.activityBranch(child, depth+1)
	}
}

// activityText describes an activity in one line.
func (a *app) activityText(x api.Activity) string {
	line := clean(x.ID) + " " + clean(x.Type) + " [" + a.paint(stateColour(x.State), clean(activityState(x))) + "]" + opt(" %s", x.AgentName)
	if x.DurationMS != nil {
		line += " " + (time.Duration(*x.DurationMS) * time.Millisecond).Round(100*time.Millisecond).String()
	}
	line += opt(" for %s", cmp.Or(x.SourceAgent, x.UserID)) + opt(" %s", x.Details.Tool)
	if x.Error != "" || x.Details.Tool == "" {
		line += opt(" %s", cmp.Or(x.Error, x.Details.Message))
	}
	return line
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
