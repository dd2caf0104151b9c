package cli

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/api"
	"github.com/signalbox-ai/signalbox/client"
)

func (a *app) cancelCmd() *cobra.Command {
	var match matchFlags
	cmd := &cobra.Command{
		Use:     "cancel ID",
		Aliases: []string{"queue-cancel"},
		Short:   "Cancel a task, waiting or running",
		Long:    "Cancel a task, waiting or running, or with --match all that match a query.\n\n" + queryHelp,
		Example: `  signalbox cancel k2m9
  signalbox cancel --match 'agent:coder state:waiting older:1h'`,
		Args:    cobra.MaximumNArgs(1),
		PreRunE: func(_ *cobra.Command, args []string) error { return match.check(args) },
		RunE: a.ask(func(ctx context.Context, c *client.Client, args []string) error {
			if match.query != "" {
				return a.bulk(ctx, c, "cancel", "cancelled", match)
			}
			return printed(a, a.cancelled)(taskArg(cancelTask)(ctx, c, args))
		}),
		ValidArgsFunction: a.completeIDs(liveTask),
	}
	match.register(cmd)
	return cmd
}

func (a *app) cancelled(got api.Cancelled) {
	if got.State == "cancelled" {
		a.say("Cancelled: %s", clean(got.QueueID))
		return
	}
	note := "Its agent has not confirmed yet. If it does not, signalbox release takes the slot away from it."
	if got.Message != "" && got.AgentURL == "" { // it is a tool task
		note = got.Message
	}
	a.note("%s", note)
	a.say("Cancelling: %s", clean(got.QueueID))
}

func (a *app) whyCmd() *cobra.Command {
	return query(a, &cobra.Command{
		Use:               "why ID",
		Short:             "Show why a task is not running",
		Long:              "Show why a task is not running: the conditions for its start in order, which of them are met, and what to\ndo about the others.",
		ValidArgsFunction: a.completeIDs(liveTask),
	}, taskArg((*client.Client).Why), a.whyText)
}

func (a *app) whyText(why api.Why) {
	a.say("%s [%s] %s", clean(why.QueueID), a.state(why.State), clean(why.Summary))
	for _, gate := range why.Gates {
		mark := a.paint(green, "✓")
		if !gate.OK {
			mark = a.paint(red, "✗")
		}
		line := fmt.Sprintf("  %s %s", mark, clean(gate.Text))
		if gate.Detail != "" {
			line += a.paint(dim, " ("+clean(gate.Detail)+")")
		}
		a.say("%s", line)
		if gate.Cure != "" && !gate.OK {
			a.say("      → %s", clean(gate.Cure))
		}
	}
	if why.ETA != nil {
		a.say("  start: %s, estimated from the last %d runs", eta(why.ETA), why.ETA.Runs)
	}
}

func (a *app) retryCmd() *cobra.Command {
	var edit api.RetryRequest
	var to routeFlags
	var timeout durationFlag
	var env []string
	var key string
	var wait waitFlags
	var match matchFlags
	cmd := &cobra.Command{
		Use:   "retry ID",
		Short: "Submit an ended task again, unchanged or edited",
		Long: "Submit an ended task again, unchanged or edited. Variables are never kept: give them again with --env.\n" +
			"A tool task calls the tool again with the same arguments, unless it had secret ones, which are not kept.\n\n" +
			"With --match all ended tasks that match a query are submitted again, unchanged; completed ones only if the\n" +
			"query says state:completed. " + queryHelp,
		Args: cobra.MaximumNArgs(1),
		PreRunE: func(_ *cobra.Command, args []string) (err error) {
			switch err = match.check(args); {
			case err != nil:
			case match.query == "":
				edit.TimeoutSeconds = timeout.seconds()
				edit.Agent, edit.Kind = to.change()
				if err = wait.check(); err == nil {
					edit.Env, err = a.taskEnv(env)
				}
			case edit.Prompt != "" || edit.Model != "" || to.given() || timeout != 0 || len(env) > 0 || key != "" || wait.on:
				err = usage("--match submits tasks again unchanged: it allows only --yes")
			}
			return err
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			if match.query != "" {
				return a.ask(func(ctx context.Context, c *client.Client, _ []string) error {
					return a.bulk(ctx, c, "retry", "retried", match)
				})(cmd, args)
			}
			return a.askRetrying(func(ctx context.Context, c *client.Client, _ []string) error {
				return a.retry(ctx, c, args[0], edit, key, wait)
			})(cmd, args)
		},
		ValidArgsFunction: a.completeIDs(endedTask),
	}
	f := cmd.Flags()
	f.StringVar(&edit.Prompt, "prompt", "", "another `prompt`")
	f.StringVar(&edit.Model, "model", "", "another `model`")
	to.register(cmd)
	f.Var(&timeout, "timeout", "new time limit of the run")
	f.StringArrayVar(&env, "env", nil, "variable for the run, `NAME=VALUE`, or NAME to take it from here; repeatable")
	f.StringVar(&key, "idempotency-key", "", "make at most one task per `key` (default: a new key)")
	wait.register(cmd)
	match.register(cmd)
	return cmd
}

func (a *app) retry(ctx context.Context, c *client.Client, part string, edit api.RetryRequest, key string, w waitFlags) error {
	id, err := resolve(ctx, c, part)
	if err != nil {
		return err
	}
	job, err := c.Retry(ctx, id, edit, client.SubmitOptions{IdempotencyKey: key, Execution: a.executionID()})
	if err != nil {
		return err
	}
	wait, cancel := w.bound(ctx)
	defer cancel()
	return a.submitted(ctx, wait, c, job, w.on)
}

// resolve returns a task's ID from the whole ID, a unique prefix or suffix, or the
// short form with the ellipsis.
func resolve(ctx context.Context, c *client.Client, typed string) (string, error) {
	if signalbox.ValidID(typed) {
		return typed, nil
	}
	part := typed
	if _, end, short := strings.Cut(typed, "…"); short {
		part = end
	}
	if strings.TrimSpace(part) == "" {
		return "", usage("%q is not a task id", typed)
	}
	ids, err := c.Find(ctx, part)
	switch {
	case err != nil:
		return "", err
	case len(ids) == 1:
		return ids[0], nil
	case slices.Contains(ids, part):
		return part, nil
	case len(ids) == 0:
		return "", failure(exitNotFound, "not_found", "no task's id begins or ends with %s", part).withHint("%s", hints["not_found"])
	}
	f := failure(exitUsage, "ambiguous", "several tasks' ids begin or end with %s:", part).withHint("give more of the id")
	f.matches = ids
	return "", f
}

// shortID is the short form of an ID: its last characters.
func shortID(id string) string {
	const shown = 4
	rest, ours := strings.CutPrefix(id, signalbox.IDPrefix)
	if !ours || len(rest) <= 2*shown {
		return clean(id)
	}
	return signalbox.IDPrefix + "…" + clean(rest[len(rest)-shown:])
}

// routeFlags change who may take a task.
type routeFlags struct {
	one, sort string
	any       bool
}

func (f *routeFlags) register(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.StringVar(&f.one, "agent", "", "only this `agent` may take it")
	flags.StringVar(&f.sort, "kind", "", "only agents of this `kind` may take it")
	flags.BoolVar(&f.any, "any-agent", false, "any agent may take it")
	cmd.MarkFlagsMutuallyExclusive("agent", "kind", "any-agent")
}

func (f *routeFlags) given() bool { return f.one != "" || f.sort != "" || f.any }

// change returns the agent and the kind to set, nil where nothing is to change.
func (f *routeFlags) change() (agent, kind *string) {
	if !f.given() {
		return nil, nil
	}
	return &f.one, &f.sort
}

func (a *app) editCmd() *cobra.Command {
	var edit api.EditRequest
	var to routeFlags
	var priority int
	var top, back bool
	var budget budgetFlags
	cmd := &cobra.Command{
		Use:   "edit ID",
		Short: "Change a waiting task: its prompt, priority, agent, budget or place",
		Long: "Change a waiting task: its prompt, priority, agent, budget or place in line. The task keeps its place unless a flag\n" +
			"changes it. If it has started meanwhile, nothing is changed, and the command fails with the code conflict.",
		Example: `  signalbox edit k2m9 --top
  signalbox edit k2m9 --prompt 'fix the login test, on Firefox only'
  signalbox edit k2m9 --agent reviewer --priority 5`,
		PreRunE: func(cmd *cobra.Command, _ []string) error {
			f := cmd.Flags()
			if f.Changed("priority") {
				edit.Priority = &priority
			}
			edit.Agent, edit.Kind = to.change()
			var err error
			if edit.Budget, err = budget.given(cmd); err != nil {
				return err
			}
			switch {
			case top:
				edit.Place = "top"
			case back:
				edit.Place = "back"
			}
			if edit == (api.EditRequest{Revision: edit.Revision}) {
				return usage("nothing to change: give --prompt, --priority, --agent, --kind, --any-agent, --budget, --budget-tokens, --top or --back")
			}
			return nil
		},
		ValidArgsFunction: a.completeIDs(waitingTask),
	}
	f := cmd.Flags()
	f.StringVar(&edit.Prompt, "prompt", "", "another `prompt`")
	f.IntVar(&priority, "priority", 0, "new priority, -10 to 10: higher is earlier")
	to.register(cmd)
	budget.register(cmd)
	f.BoolVar(&top, "top", false, "move it to the front of its queue")
	f.BoolVar(&back, "back", false, "move it behind all tasks of its priority")
	f.Int64Var(&edit.Revision, "revision", 0, "change it only if the task has this `revision` (default: the current one)")
	cmd.MarkFlagsMutuallyExclusive("top", "back")
	return query(a, cmd, taskArg(func(c *client.Client, ctx context.Context, id string) (api.Task, error) {
		if edit.Revision == 0 {
			t, err := c.Task(ctx, id)
			if err != nil {
				return t, err
			}
			edit.Revision = t.Revision
		}
		return c.Edit(ctx, id, edit)
	}), func(t api.Task) {
		a.say("Changed: %s (position %d in %s)", clean(t.QueueID), t.Position, clean(t.Queue))
	})
}
