package cli

import (
	"bufio"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/api"
	"github.com/signalbox-ai/signalbox/client"
	"github.com/signalbox-ai/signalbox/internal/port"
)

// exportPage is the number of tasks that one request of an export reads.
const exportPage = 200

func (a *app) exportCmd() *cobra.Command {
	var file string
	cmd := &cobra.Command{
		Use:   "export",
		Short: "Write all tasks, one line of JSON each",
		Long: `Write all tasks, one line of JSON each, to standard output or a file: first the waiting tasks in their order, then the
		running ones, then the ended ones with their results, then the usage by day (signalbox usage). The export leaves out
		the values of env and of secret arguments.

A task that changes meanwhile may be exported in its old state, or twice (the later line counts). For a consistent
snapshot pause the queue first (signalbox pause) and wait until running tasks have ended.`,
		Example: `  signalbox export -o tasks.jsonl
  signalbox export | gzip > tasks.jsonl.gz
  signalbox import --director http://new:8080 tasks.jsonl`,
		RunE: a.ask(func(ctx context.Context, c *client.Client, _ []string) error { return a.exportTo(ctx, c, file) }),
	}
	cmd.Flags().StringVarP(&file, "output", "o", "", "write to this `file`, which must not exist")
	return cmd
}

// exportTo writes the export to a file, or to standard output. It removes an
// incomplete file.
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
	if err = cmp.Or(err, f.Sync(), f.Close()); err != nil {
		_ = os.Remove(file) // incomplete
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
		if len(page.Usage) > 0 {
			if err := out.Encode(port.Used{Usage: page.Usage}); err != nil {
				return tasks, err
			}
		}
		tasks += len(page.Tasks)
		a.showProgress("exported", tasks)
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

// showProgress draws the progress of a long command on a terminal.
func (a *app) showProgress(what string, n int) {
	if a.io.ErrTTY && !a.dumb() {
		a.line.draw(fmt.Sprintf("%d tasks %s", n, what), a.io.Columns)
	}
}

func (a *app) importCmd() *cobra.Command {
	var running string
	var dry bool
	var from port.Source
	cmd := &cobra.Command{
		Use:   "import SOURCE",
		Short: "Take over tasks from an export or another queue",
		Long: `Take over tasks. SOURCE is
  a file of signalbox export, or - for standard input
  the folder of a work queue, with its folders pending and dispatched (AG_QUEUE_DIR)
  redis://…, with the keys agent:running:NAME and agent:queue:NAME of an execution queue
  a .tasksQueue file of asynchronous tools
Waiting tasks keep their order and go to the end of the line. Parked tasks wait there, too, and continue their
conversations later. Ended tasks come with their results. Tasks that were imported before are recognized by their ids
and left alone, so simply run an interrupted import again. The source is not changed: stop its server first, or its
tasks run twice. A task of another queue gets a new id, which is printed beside the old one; every command, the API
and the MCP tools accept either.`,
		Example: `  signalbox import tasks.jsonl
  signalbox import --dry-run ~/.agency/queue
  signalbox import --running requeue redis://localhost:6379/0`,
		PreRunE: func(_ *cobra.Command, args []string) (err error) {
			if running != "interrupt" && running != "requeue" {
				return usage("--running: want interrupt or requeue, got %q", running)
			}
			from, err = port.Open(args[0])
			return err
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			if dry {
				return a.importInto(cmd.Context(), from, nil, running)
			}
			return a.ask(func(ctx context.Context, c *client.Client, _ []string) error {
				return a.importInto(ctx, from, c, running)
			})(cmd, args)
		},
		ValidArgsFunction: completeFiles,
	}
	cmd.Flags().StringVar(&running, "running", "interrupt", "what to do with tasks that were running there: `interrupt` ends them as failed, requeue puts them back in line")
	cmd.Flags().BoolVar(&dry, "dry-run", false, "only read the source and say what it has")
	return cmd
}

// The limits of one request of an import.
const (
	importTasks = 200
	importBytes = 4 << 20
)

// importing is a running import.
type importing struct {
	a       *app
	c       *client.Client // nil for a dry run
	running string
	batch   []api.ExportedTask
	size    int
	out     imported
}

// imported is the JSON of an import.
type imported struct {
	Source string `json:"source"`
	Tasks  int    `json:"tasks"` // read
	api.Imported
	Unread []unread `json:"unread"`        // records that are not tasks
	IDs    []newID  `json:"ids,omitempty"` // of tasks that got a new ID
	DryRun bool     `json:"dry_run,omitempty"`
}

// newID maps the ID of a task in its old queue to the one here.
type newID struct {
	Old string `json:"old"`
	New string `json:"new"`
}

type unread struct {
	Where   string `json:"where"`
	Message string `json:"message"`
}

func (a *app) importInto(ctx context.Context, from port.Source, c *client.Client, running string) error {
	in := importing{a: a, c: c, running: running, out: imported{
		Source: from.What, DryRun: c == nil, Unread: []unread{}, Imported: api.Imported{Refused: []api.ImportedRefusal{}},
	}}
	err := cmp.Or(from.Read(ctx, port.Taker{
		Task:  func(t api.ExportedTask) error { return in.add(ctx, t) },
		Usage: func(rows []api.ExportedUsage) error { return in.usage(ctx, rows) },
		Bad:   in.unreadable,
	}), in.flush(ctx))
	a.line.clear()
	err = cmp.Or(err, a.print(in.out, func() { a.importSummary(&in.out) }))
	if left := len(in.out.Refused) + len(in.out.Unread); err == nil && left > 0 {
		err = fmt.Errorf("%s could not be imported, see above", plural(left, "record", "records"))
	}
	return err
}

func (in *importing) unreadable(where, why string) {
	in.out.Unread = append(in.out.Unread, unread{where, why})
	in.a.note("Not read: %s: %s", where, why)
}

func (in *importing) add(ctx context.Context, t api.ExportedTask) error {
	in.out.Tasks++
	if old := port.OldID(t); old != "" {
		in.out.IDs = append(in.out.IDs, newID{old, t.QueueID})
	}
	if in.c == nil {
		return nil
	}
	size := len(t.Request) + len(t.Result)
	if len(in.batch) > 0 && (len(in.batch) >= importTasks || in.size+size > importBytes) {
		if err := in.flush(ctx); err != nil {
			return err
		}
	}
	in.batch, in.size = append(in.batch, t), in.size+size
	return nil
}

// usage imports what runs used. Existing rows stay as they are.
func (in *importing) usage(ctx context.Context, rows []api.ExportedUsage) error {
	if in.c == nil {
		return nil
	}
	for some := range slices.Chunk(rows, maxPage) {
		done, err := in.c.Import(ctx, api.ImportRequest{Usage: some})
		if err != nil {
			return err
		}
		in.out.Usage += done.Usage
	}
	return nil
}

func (in *importing) flush(ctx context.Context) error {
	batch := in.batch
	if in.batch, in.size = in.batch[:0], 0; len(batch) == 0 {
		return nil
	}
	return in.send(ctx, batch)
}

// send imports a batch. If the director rejects it as invalid, send imports its tasks
// one by one and reports the invalid ones as refused.
func (in *importing) send(ctx context.Context, batch []api.ExportedTask) error {
	done, err := in.c.Import(ctx, api.ImportRequest{Tasks: batch, Running: in.running})
	switch {
	case err == nil:
		in.out.Imported.Imported += done.Imported
		in.out.Known += done.Known
		for _, r := range done.Refused {
			in.refused(r)
		}
		in.a.showProgress("imported", in.out.Imported.Imported+in.out.Known)
		return nil
	case client.Code(err) != string(signalbox.CodeValidation):
		in.out.IDs = slices.DeleteFunc(in.out.IDs, func(id newID) bool {
			return slices.ContainsFunc(batch, func(t api.ExportedTask) bool { return t.QueueID == id.New })
		})
		return errors.Join(err, errors.New("run the import again: tasks that were imported already are left alone"))
	case len(batch) == 1:
		in.refused(api.ImportedRefusal{QueueID: batch[0].QueueID, Message: err.Error()})
		return nil
	}
	for i := range batch { // find the invalid task
		if err := in.send(ctx, batch[i:i+1]); err != nil {
			return err
		}
	}
	return nil
}

func (in *importing) refused(r api.ImportedRefusal) {
	in.out.Refused = append(in.out.Refused, r)
	in.out.IDs = slices.DeleteFunc(in.out.IDs, func(id newID) bool { return id.New == r.QueueID })
	in.a.note("Refused: %s: %s", r.QueueID, r.Message)
}

func (a *app) importSummary(out *imported) {
	for _, id := range out.IDs {
		a.say("%s → %s", clean(id.Old), id.New)
	}
	if out.DryRun {
		a.say("%s: %s, nothing was imported (--dry-run)", out.Source, plural(out.Tasks, "task", "tasks"))
		return
	}
	a.say("Imported %s from %s; %d were imported before", plural(out.Imported.Imported, "task", "tasks"), out.Source, out.Known)
	if out.Usage > 0 {
		a.say("Imported %s of usage", plural(out.Usage, "row", "rows"))
	}
}
