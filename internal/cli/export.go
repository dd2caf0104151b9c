package cli

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/spf13/cobra"

	"github.com/signalbox-ai/signalbox/client"
	"github.com/signalbox-ai/signalbox/internal/port"
)

// exportPage is how many tasks an export asks for at a time.
const exportPage = 200

func (a *app) exportCmd() *cobra.Command {
	var file string
	cmd := &cobra.Command{
		Use:   "export",
		Short: "Write every task as a line of JSON",
		Long: `Write every task as a line of JSON, to standard output or a file: waiting tasks in their order, then those that run,
then ended ones with their results. The values of env and of secret arguments are not in it.

What changes meanwhile may be exported as it was, or twice (the later line counts). For an export of one moment
pause the queue first (signalbox pause) and let what runs come to its end.`,
		Example: `  signalbox export -o tasks.jsonl
  signalbox export | gzip > tasks.jsonl.gz
  signalbox import --director http://new:8080 tasks.jsonl`,
		RunE: run(func(ctx context.Context, _ []string) error {
			return a.with(ctx, func(c *client.Client) error { return a.exportTo(ctx, c, file) })
		}),
	}
	cmd.Flags().StringVarP(&file, "output", "o", "", "write to this `file`, which must not be there yet")
	return cmd
}

// exportTo writes the export to a file, or to standard output. A file that was
// not written to its end is taken away again.
func (a *app) exportTo(ctx context.Context, c *client.Client, file string) error {
	if file == "" {
		_, err := a.export(ctx, c, a.io.Out)
		return err
	}
	f, err := os.OpenFile(file, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	n, err := a.export(ctx, c, f)
	if err == nil {
		err = f.Sync()
	}
	if bad := f.Close(); err == nil {
		err = bad
	}
	if err != nil {
		_ = os.Remove(file) // half an export is none
		return err
	}
	a.note("Exported %s to %s.", plural(n, "task", "tasks"), file)
	return nil
}

func (a *app) export(ctx context.Context, c *client.Client, to io.Writer) (tasks int, err error) {
	w := bufio.NewWriterSize(to, 1<<16)
	out := json.NewEncoder(w)
	out.SetEscapeHTML(false)
	if err := out.Encode(port.Head{Export: port.Format, Version: a.version(), At: time.Now().UTC().Format(time.RFC3339)}); err != nil {
		return 0, err
	}
	for after := ""; ; {
		page, err := c.Export(ctx, exportPage, after)
		if err != nil {
			return tasks, err
		}
		for i := range page.Tasks {
			if err := out.Encode(&page.Tasks[i]); err != nil {
				return tasks, err
			}
		}
		tasks += len(page.Tasks)
		a.progressed("exported", tasks)
		if after = page.Next; after == "" {
			break
		}
	}
	a.line.clear()
	if err := out.Encode(port.Foot{End: true, Tasks: tasks}); err != nil {
		return tasks, err
	}
	return tasks, w.Flush()
}

// progressed shows how far a long command is, where someone looks.
func (a *app) progressed(what string, n int) {
	if a.io.ErrTTY && !a.dumb() {
		a.line.draw(fmt.Sprintf("%d tasks %s", n, what), a.io.Columns)
	}
}
