package cli

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/signalbox-ai/signalbox/api"
	"github.com/signalbox-ai/signalbox/client"
)

func (a *app) workspacesCmd() *cobra.Command {
	var agent string
	cmd := &cobra.Command{
		Use:   "workspaces",
		Short: "List the worktrees that agents have made, and discard one",
		Long: `List the worktrees that agents have made for tasks, for each agent the last used first. STATE is in_use (a run works in
it), uncommitted (it has uncommitted files), unlanded (its commits have landed nowhere), landed, empty, or unknown with
the reason. Agents remove landed and empty worktrees automatically, except the last 8.`,
		Example: "  signalbox workspaces --agent coder\n  signalbox workspaces discard sd7k2m9x",
	}
	cmd.Flags().StringVar(&agent, "agent", "", "only worktrees of this agent")
	cmd.AddCommand(a.discardCmd())
	return query(a, cmd, func(ctx context.Context, c *client.Client, _ []string) (api.Workspaces, error) {
		return c.Workspaces(ctx, agent)
	}, a.workspaceTable)
}

func (a *app) workspaceTable(all api.Workspaces) {
	none := "No agent has a worktree: agents work in their folder, unless agent.workspace or submit --workspace says worktree or clone."
	if slices.ContainsFunc(all.Agents, func(g api.WorkspaceAgent) bool { return g.Message != "" }) {
		none = "No agent that answered has a worktree."
	}
	list(a, all.Workspaces, none,
		[]string{"AGENT", "NAME", "STATE", "SIZE", "USED", "TASK", "BRANCH", "REPOSITORY"}, func(w *api.Workspace) []string {
			used := "-"
			if !w.LastUsedAt.IsZero() {
				used = a.since(w.LastUsedAt) + " ago"
			}
			return []string{w.Agent, w.Name, workspaceState(w), sizeText(w.Bytes, w.BytesAtLeast), used, cmp.Or(shortID(w.QueueID), "-"), cmp.Or(w.Branch, "-"), cmp.Or(w.Repo, "-")}
		})
	for i := range all.Workspaces {
		if w := &all.Workspaces[i]; w.Message != "" {
			a.say("%s at %s: %s", clean(w.Name), clean(w.Agent), clean(w.Message))
		}
	}
	for _, g := range all.Agents {
		for _, m := range g.Mirrors {
			a.say("%s keeps a mirror of %s: %s, for %s.", clean(g.Agent), clean(m.Repo), sizeText(m.Bytes, false), plural(m.Worktrees, "worktree", "worktrees"))
		}
		if g.Full != "" {
			a.say("%s takes no tasks: %s", clean(g.Agent), clean(g.Full))
		}
		if g.Message != "" {
			a.note("%s", clean(capitalize(g.Message)))
		}
	}
}

func workspaceState(w *api.Workspace) string {
	if w.State == api.WorkspaceUnlanded {
		return fmt.Sprintf("unlanded (%s)", plural(w.CommitsCount, "commit", "commits"))
	}
	return w.State
}

// sizeText is a number of bytes for people.
func sizeText(n int64, atLeast bool) string {
	text := fmt.Sprintf("%d B", n)
	for i, unit := range []string{"KiB", "MiB", "GiB", "TiB"} {
		if size := float64(n) / float64(int64(1)<<(10*(i+1))); size >= 1 {
			text = fmt.Sprintf("%.1f %s", size, unit)
		}
	}
	if atLeast {
		return "over " + text
	}
	return text
}

func (a *app) discardCmd() *cobra.Command {
	var agent string
	var yes bool
	var how api.DiscardWorkspace
	cmd := &cobra.Command{
		Use:   "discard NAME",
		Short: "Discard a worktree",
		Long: `Discard a worktree. The command first says what would be lost, and asks; without a terminal it needs --yes. Uncommitted
files, files that git ignores and repositories inside the worktree are lost. Commits stay on its branch; the branch is
deleted only if all its commits have landed, or with --delete-branch. If the worktree changed after the command said what
would be lost, nothing is discarded. The conversation that worked there continues in a new worktree.`,
		Example: "  signalbox workspaces discard sd7k2m9x --delete-branch",
		Args:    cobra.ExactArgs(1),
		RunE: a.ask(func(ctx context.Context, c *client.Client, args []string) error {
			w, err := findWorkspace(ctx, c, agent, args[0])
			if err != nil {
				return err
			}
			lost := a.sayLost(w, how.DeleteBranch)
			if !yes {
				question := fmt.Sprintf("Discard the worktree %s of %s?", w.Name, w.Agent)
				if lost {
					question = fmt.Sprintf("Discard the worktree %s of %s, and lose that?", w.Name, w.Agent)
				}
				if err := a.confirm(ctx, question); err != nil {
					return err
				}
			}
			how.Seen = w.Seen
			return printed(a, func(d api.WorkspaceDiscarded) {
				branch := "; its branch " + d.Branch + " stays"
				if d.BranchDeleted {
					branch = ", with its branch " + d.Branch
				}
				a.say("Discarded: %s (%s)%s", clean(d.Name), sizeText(d.Bytes, false), clean(branch))
			})(c.DiscardWorkspace(ctx, w.Agent, w.Name, how))
		}),
		ValidArgsFunction: a.completeArg(workspaceNames),
	}
	f := cmd.Flags()
	f.StringVar(&agent, "agent", "", "the agent that has it, if several have one of that name")
	f.BoolVar(&yes, "yes", false, "do not ask for confirmation")
	f.BoolVar(&how.DeleteBranch, "delete-branch", false, "delete its branch too, with its commits")
	return cmd
}

// findWorkspace returns the worktree with a name.
func findWorkspace(ctx context.Context, c *client.Client, agent, name string) (api.Workspace, error) {
	all, err := c.Workspaces(ctx, agent)
	if err != nil {
		return api.Workspace{}, err
	}
	found := slices.DeleteFunc(all.Workspaces, func(w api.Workspace) bool { return w.Name != name })
	switch len(found) {
	case 1:
		return found[0], nil
	case 0:
		var silent []string
		for _, g := range all.Agents {
			if g.Message != "" {
				silent = append(silent, g.Message)
			}
		}
		return api.Workspace{}, failure(exitNotFound, "not_found", "no agent has a worktree %s%s", clean(name), opt(" (%s)", strings.Join(silent, "; "))).withHint("signalbox workspaces lists them")
	}
	var agents []string
	for _, w := range found {
		agents = append(agents, w.Agent)
	}
	return api.Workspace{}, usage("%s have a worktree %s: choose one with --agent", clean(strings.Join(agents, " and ")), clean(name))
}

// sayLost prints what would be lost with a worktree, and reports whether anything would.
func (a *app) sayLost(w api.Workspace, branch bool) bool {
	tell := func(what string, n int, lines []string) {
		a.note("%s", what)
		for _, line := range lines {
			a.note("  %s", clean(line))
		}
		if n > len(lines) {
			a.note("  and %d more", n-len(lines))
		}
	}
	if w.Files > 0 {
		tell(plural(w.Files, "uncommitted file would be lost:", "uncommitted files would be lost:"), w.Files, w.Uncommitted)
	}
	if w.NestedCount > 0 {
		tell(plural(w.NestedCount, "repository inside it has work that would be lost:", "repositories inside it have work that would be lost:"), w.NestedCount, w.Nested)
	}
	if w.CommitsCount > 0 && branch {
		tell(plural(w.CommitsCount, "commit", "commits")+" of "+clean(w.Branch)+" would be lost:", w.CommitsCount, w.Commits)
	} else if w.CommitsCount > 0 {
		a.note("%s on %s, because they have not landed.", plural(w.CommitsCount, "commit stays", "commits stay"), clean(w.Branch))
	}
	return w.Files > 0 || w.NestedCount > 0 || branch && w.CommitsCount > 0
}

func workspaceNames(ctx context.Context, c *client.Client) []string {
	all, _ := c.Workspaces(ctx, "")
	return completions(all.Workspaces, func(w *api.Workspace) (string, string) {
		return w.Name, w.Agent + ", " + w.State
	})
}
