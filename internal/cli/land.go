package cli

import (
	"context"
	"time"

	"github.com/spf13/cobra"

	"github.com/signalbox-ai/signalbox/api"
	"github.com/signalbox-ai/signalbox/client"
)

func (a *app) landCmd() *cobra.Command {
	var req api.LandRequest
	var wait waitFlags
	var pr, drop bool
	cmd := &cobra.Command{
		Use:   "land ID",
		Short: "Land what a completed task did in its worktree on a branch",
		Long: "Land what a completed task did in its worktree on a branch. Work that conflicts, or fails its checks there, goes back\n" +
			"to its conversation; what that cannot mend needs you. Without --onto it lands on the branch that the worktree was made\n" +
			"from; what has not landed is tried again as before. With --wait the command ends when it has landed, or fails when it\n" +
			"needs you.",
		Example: "  signalbox land k2m9 --onto main --wait",
		Args:    cobra.ExactArgs(1),
		RunE: a.ask(func(ctx context.Context, c *client.Client, args []string) error {
			if err := wait.check(); err != nil {
				return err
			}
			if pr && req.Onto != "" || drop && (pr || wait.on || req != (api.LandRequest{})) {
				return usage("--pr goes without --onto, and --drop without any other")
			}
			if pr {
				req.Onto = "pr"
			}
			id, err := resolve(ctx, c, args[0])
			if err != nil {
				return err
			}
			var l api.Landing
			if drop {
				l, err = c.DropLanding(ctx, id)
			} else {
				l, err = c.Land(ctx, id, req)
			}
			if err == nil && wait.on {
				bounded, cancel := wait.bound(ctx)
				defer cancel()
				l, err = a.awaitLanding(bounded, c, l)
			}
			if err != nil {
				return err
			}
			if err := printed(a, a.landingText)(l, nil); err != nil {
				return err
			}
			if wait.on && l.State != "landed" {
				return failure(exitFailed, "not_landed", "%s", clean(l.Text)).about(id)
			}
			return nil
		}),
		ValidArgsFunction: a.completeIDs(anyTask),
	}
	f := cmd.Flags()
	f.StringVar(&req.Onto, "onto", "", "the `branch` (default: the one that the worktree was made from)")
	f.Var(newChoice(&req.Method, "", "rebase", "squash"), "method", "rebase: each commit of the work becomes one of the branch; squash: all of it becomes one (default: as the agent is configured)")
	f.BoolVar(&req.FastForward, "fast-forward", false, "a clean checkout of the branch goes forward with it")
	f.BoolVar(&pr, "pr", false, "push the work, and open a pull request")
	f.BoolVar(&drop, "drop", false, "give up what has not landed")
	f.BoolVar(&wait.on, "wait", false, "wait until it has landed, or needs you")
	f.Var(&wait.limit, "wait-timeout", "how long to wait here; landing goes on (default: without limit)")
	return cmd
}

// landingPoll is how often a landing is asked for.
const landingPoll = 500 * time.Millisecond

// awaitLanding returns a landing that is under way no more.
func (a *app) awaitLanding(ctx context.Context, c *client.Client, l api.Landing) (api.Landing, error) {
	tick := time.NewTicker(landingPoll)
	defer tick.Stop()
	for last := ""; l.State == "queued" || l.State == "landing" || l.State == "returned"; {
		if l.Text != last {
			last = l.Text
			a.note("%s", clean(capitalize(l.Text)))
		}
		select {
		case <-ctx.Done():
			return l, failure(exitWaitOver, "wait_over", "%s; landing goes on: signalbox landings", clean(l.Text)).about(l.QueueID)
		case <-tick.C:
		}
		t, err := c.Task(ctx, l.QueueID)
		if err != nil {
			return l, err
		}
		if t.Landing != nil {
			l = *t.Landing
		}
	}
	return l, nil
}

func (a *app) landingText(l api.Landing) { a.say("%s: %s.", l.QueueID, clean(l.Text)) }

func (a *app) landingsCmd() *cobra.Command {
	return &cobra.Command{
		Use:   "landings",
		Short: "List work on its way to a branch, and what needs you there",
		Args:  cobra.NoArgs,
		RunE: a.ask(func(ctx context.Context, c *client.Client, _ []string) error {
			return printed(a, a.landingRows)(c.Landings(ctx))
		}),
	}
}

func (a *app) landingRows(all api.Landings) {
	if len(all.Landings) == 0 {
		a.say("Nothing is to land.")
		return
	}
	rows := make([][]string, len(all.Landings))
	for i, l := range all.Landings {
		rows[i] = []string{l.QueueID, l.State, clean(l.Onto), clean(l.Text)}
	}
	a.table(rows)
}
