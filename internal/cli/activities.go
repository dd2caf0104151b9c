package cli

import (
	"cmp"
	"context"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/signalbox-ai/signalbox/api"
	"github.com/signalbox-ai/signalbox/client"
)

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
		if err := a.say("%s  %s", a.clock(x.CreatedAt), a.activityText(x)); err != nil {
			return err
		}
	}
	switch {
	case len(page.Activities) == 0:
		a.note("Nothing was done.")
	case page.Next != "":
		a.note("There are more: --before %s", page.Next)
	}
	return nil
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
	if err := a.say("%s%s", strings.Repeat("  ", depth), a.activityText(x)); err != nil {
		return err
	}
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
