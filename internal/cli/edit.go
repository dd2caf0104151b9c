package cli

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/signalbox-ai/signalbox/api"
	"github.com/signalbox-ai/signalbox/client"
)

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
