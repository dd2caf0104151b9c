package cli

import (
	"context"
	"fmt"
	"io"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/signalbox-ai/signalbox/api"
	"github.com/signalbox-ai/signalbox/client"
)

func (a *app) statusCmd() *cobra.Command {
	var opts client.QueueOptions
	cmd := &cobra.Command{
		Use:     "status [ID]",
		Aliases: []string{"queue-status"},
		Short:   "Show the queue, or one task",
		Long:    "Show the queue: how full it is and what waits, in order. With ID show one task.",
		Args:    cobra.MaximumNArgs(1),
		RunE: run(func(ctx context.Context, args []string) error {
			return a.with(ctx, func(c *client.Client) error {
				if len(args) == 1 {
					return a.taskStatus(ctx, c, args[0])
				}
				return a.queueStatus(ctx, c, opts)
			})
		}),
		ValidArgsFunction: a.completeIDs(anyTask),
	}
	cmd.Flags().StringVar(&opts.Queue, "queue", "", "only this `queue`, such as work or agent:coder")
	cmd.Flags().IntVar(&opts.Limit, "limit", 100, "`number` of tasks to list, 1 to 1000")
	return cmd
}

func (a *app) queueStatus(ctx context.Context, c *client.Client, opts client.QueueOptions) error {
	queue, err := c.Queue(ctx, opts)
	if err != nil {
		return err
	}
	return a.print(queue, func() error {
		if err := a.say("Queue: %d/%d tasks", queue.Depth, queue.MaxSize); err != nil {
			return err
		}
		for i, task := range queue.Tasks {
			if err := a.say("  %d. %s [%s] %s", i+1, clean(task.QueueID), a.state(task.State), clean(task.PromptPreview)); err != nil {
				return err
			}
		}
		if queue.Next != "" {
			a.note("There are more; --limit shows them.")
		}
		if queue.DispatchedCount > 0 {
			a.note("%s running; signalbox agents shows where.", plural(queue.DispatchedCount, "task is", "tasks are"))
		}
		for _, p := range queue.Paused {
			a.note("%s", a.pauseLine(p))
		}
		return nil
	})
}

func (a *app) taskStatus(ctx context.Context, c *client.Client, part string) error {
	id, err := resolve(ctx, c, part)
	if err != nil {
		return err
	}
	task, err := c.Task(ctx, id)
	if err != nil {
		return err
	}
	return a.print(task, func() error {
		if err := a.say("%s [%s] %s", clean(task.QueueID), a.state(task.State), clean(task.PromptPreview)); err != nil {
			return err
		}
		return a.table(a.taskRows(task))
	})
}

// taskRows are what a person may want to know of a task, a name and a value
// each.
func (a *app) taskRows(t api.Task) [][]string {
	rows := [][]string{
		{"queue", t.Queue}, {"position", positionText(t)}, {"start", eta(t.ETA)},
		{"reason", t.Reason}, {"message", t.Message}, {"last error", t.LastError},
		{"agent", t.Agent}, {"agent's id", t.TaskID}, {"attempts", attempts(t)},
		{"model", t.Model}, {"tier", t.Tier}, {"session", t.SessionID},
		{"mode", modeText(t)}, {"source", t.Source}, {"by", ownerText(t)}, {"called by", t.ParentID}, {"job", t.SourceJob}, {"retry of", t.RetryOf},
		{"created", a.clock(t.CreatedAt)}, {"not before", a.clockOf(t.NotBefore)},
		{"dispatched", a.clockOf(t.DispatchedAt)}, {"started", a.clockOf(t.StartedAt)}, {"ended", a.clockOf(t.EndedAt)},
	}
	if t.Result != nil {
		rows = append(rows, resultRows(t.Result)...)
	}
	for _, s := range t.Stale {
		rows = append(rows, []string{"stale", fmt.Sprintf("%s said %s at %s, after it had lost its slot: kept aside", s.Agent, s.State, a.clock(s.At))})
	}
	var said [][]string
	for _, row := range rows {
		if row[1] != "" {
			said = append(said, []string{"  " + row[0] + ":", row[1]})
		}
	}
	return said
}

// modeText is how a task was called, where that is not the usual way.
func modeText(t api.Task) string {
	if t.Mode == "queue" {
		return ""
	}
	return t.Mode
}

// ownerText is who submitted a task.
func ownerText(t api.Task) string {
	switch {
	case t.SourceUserEmail != "":
		return t.SourceUserEmail
	case t.SourceUserID != "":
		return "user " + t.SourceUserID
	case t.SourceAgent != "":
		return "agent " + t.SourceAgent
	case t.SourceService != "":
		return "service " + t.SourceService
	}
	return ""
}

func resultRows(r *api.Result) [][]string {
	rows := [][]string{{"ran for", ago(time.Duration(r.DurationSeconds * float64(time.Second)))}}
	if r.ExitCode != nil {
		rows = append(rows, []string{"exit code", fmt.Sprint(*r.ExitCode)})
	}
	if u := r.TokenUsage; u != nil {
		rows = append(rows, []string{"tokens", fmt.Sprintf("%d in, %d out", u.Input, u.Output)})
	}
	if r.CostUSD > 0 {
		rows = append(rows, []string{"cost", fmt.Sprintf("%.4f USD", r.CostUSD)})
	}
	return append(rows, []string{"output", firstLine(r.Output)})
}

// firstLine is the beginning of an answer, for a table.
func firstLine(s string) string {
	const most = 100
	for i, r := range []rune(s) {
		if r == '\n' || i == most {
			return string([]rune(s)[:i]) + " …"
		}
	}
	return s
}

func positionText(t api.Task) string {
	switch {
	case t.Position == 0:
		return ""
	case t.PositionApproximate:
		return fmt.Sprintf("about %d", t.Position)
	}
	return fmt.Sprint(t.Position)
}

func attempts(t api.Task) string {
	switch {
	case t.Attempts == 0:
		return ""
	case t.MaxAttempts == 0:
		return fmt.Sprintf("%d failed", t.Attempts)
	}
	return fmt.Sprintf("%d of %d failed", t.Attempts, t.MaxAttempts)
}

func (a *app) clockOf(t *time.Time) string {
	if t == nil {
		return ""
	}
	return a.clock(*t)
}

// table writes rows in columns, made safe.
func (a *app) table(rows [][]string) error {
	w := tabwriter.NewWriter(a.io.Out, 0, 0, 2, ' ', 0)
	for _, row := range rows {
		for i, cell := range row {
			if i > 0 {
				io.WriteString(w, "\t")
			}
			io.WriteString(w, clean(cell))
		}
		io.WriteString(w, "\n")
	}
	return w.Flush()
}
