package cli

import (
	"bytes"
	"context"
	"fmt"
	"io"

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
