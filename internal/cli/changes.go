package cli

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"github.com/signalbox-ai/signalbox/api"
	"github.com/signalbox-ai/signalbox/client"
)

func (a *app) diffCmd() *cobra.Command {
	var stat bool
	cmd := &cobra.Command{
		Use:   "diff ID",
		Short: "Print what a task changed in its repository",
		Long: "Print what the last run of a task changed in its repository, as a patch in git's format. A patch of more than 256 KiB\n" +
			"comes from the agent. If the agent does not send it, the command prints the part that the director keeps, says what\n" +
			"is missing and fails. --stat prints the files with their line counts, --json both.",
		Example: "  signalbox diff k2m9 | git apply",
		RunE: a.ask(func(ctx context.Context, c *client.Client, args []string) error {
			if stat || a.json {
				return printed(a, a.diffStat)(taskArg((*client.Client).Diff)(ctx, c, args))
			}
			return a.printPatch(ctx, c, args[0])
		}),
		ValidArgsFunction: a.completeIDs(anyTask),
	}
	cmd.Flags().BoolVar(&stat, "stat", false, "print only the files, with the lines added and removed")
	return cmd
}

func (a *app) diffStat(d api.Diff) {
	rows := make([][]string, len(d.Files))
	for i, f := range d.Files {
		name, lines := f.Path, fmt.Sprintf("+%d −%d", f.Insertions, f.Deletions)
		if f.From != "" {
			name = f.From + " → " + f.Path
		}
		if f.Binary {
			lines = "binary"
		}
		rows[i] = []string{"  " + f.Status, lines, name}
	}
	a.table(rows)
	if more := d.FilesChanged - len(d.Files); more > 0 {
		a.say("  … and %s", plural(more, "file", "files"))
	}
	a.say("%s", clean(d.Summary()))
}

func (a *app) printPatch(ctx context.Context, c *client.Client, part string) error {
	id, err := resolve(ctx, c, part)
	if err != nil {
		return err
	}
	out := a.outWriter()
	if a.colours() {
		out = &patchColours{app: a, w: out}
	}
	cut, err := c.Patch(ctx, id, out)
	switch {
	case err != nil:
		return err
	case cut != "":
		return failure(exitError, "patch_cut", "this is not the whole patch: %s", clean(cut)).about(id)
	}
	return nil
}

// patchColours paints the lines of a patch.
type patchColours struct {
	app    *app
	w      io.Writer
	colour string // of the line that has begun
	inLine bool
	inHunk bool
}

func (p *patchColours) Write(b []byte) (int, error) {
	for line := range bytes.Lines(b) {
		if !p.inLine {
			p.colour = p.colourOf(line)
		}
		text, ended := bytes.CutSuffix(line, []byte("\n"))
		if _, err := io.WriteString(p.w, p.app.paint(p.colour, string(text))); err != nil {
			return 0, err
		}
		if p.inLine = !ended; ended {
			if _, err := io.WriteString(p.w, "\n"); err != nil {
				return 0, err
			}
		}
	}
	return len(b), nil
}

// colourOf returns the colour of a line, by its beginning.
func (p *patchColours) colourOf(line []byte) string {
	switch {
	case bytes.HasPrefix(line, []byte("@@ ")):
		p.inHunk = true
		return yellow
	case bytes.HasPrefix(line, []byte("diff --git ")):
		p.inHunk = false
		return bold
	case !p.inHunk:
		return bold
	case line[0] == '+':
		return green
	case line[0] == '-':
		return red
	}
	return ""
}

func (a *app) landCmd() *cobra.Command {
	var req api.LandRequest
	var wait waitFlags
	var pr, drop bool
	cmd := &cobra.Command{
		Use:   "land ID",
		Short: "Land the work of a completed task on a branch",
		Long: "Land the work that a completed task did in its worktree on a branch. If the work conflicts there or fails its checks,\n" +
			"it goes back to its conversation; if the conversation cannot fix it, it needs you. Without --onto it lands on the\n" +
			"branch that the worktree was made from; a landing that failed before is tried again with its settings. With --wait\n" +
			"the command waits until the work has landed, and fails if it needs you.",
		Example: "  signalbox land k2m9 --onto main --wait",
		Args:    cobra.ExactArgs(1),
		RunE: a.ask(func(ctx context.Context, c *client.Client, args []string) error {
			if err := wait.check(); err != nil {
				return err
			}
			if pr && req.Onto != "" || drop && (pr || wait.on || req != (api.LandRequest{})) {
				return usage("--pr excludes --onto, and --drop excludes all other flags")
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
	f.Var(newChoice(&req.Method, "", "rebase", "squash"), "method", "rebase: each commit of the work becomes a commit of the branch; squash: all of them become one (default: as the agent is configured)")
	f.BoolVar(&req.FastForward, "fast-forward", false, "also fast-forward a clean checkout of the branch")
	f.BoolVar(&pr, "pr", false, "push the work, and open a pull request")
	f.BoolVar(&drop, "drop", false, "give up what has not landed")
	f.BoolVar(&wait.on, "wait", false, "wait until it has landed, or needs you")
	f.Var(&wait.limit, "wait-timeout", "how long to wait here; landing goes on (default: without limit)")
	return cmd
}

// landingPoll is the interval at which a landing is polled.
const landingPoll = 500 * time.Millisecond

// awaitLanding waits until a landing is no longer under way.
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
		Short: "List work that is landing on a branch, and landings that need you",
		Args:  cobra.NoArgs,
		RunE: a.ask(func(ctx context.Context, c *client.Client, _ []string) error {
			return printed(a, a.landingRows)(c.Landings(ctx))
		}),
	}
}

func (a *app) landingRows(all api.Landings) {
	if len(all.Landings) == 0 {
		a.say("No landings.")
		return
	}
	rows := make([][]string, len(all.Landings))
	for i, l := range all.Landings {
		rows[i] = []string{l.QueueID, l.State, clean(l.Onto), clean(l.Text)}
	}
	a.table(rows)
}
