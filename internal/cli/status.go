package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"strconv"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/api"
	"github.com/signalbox-ai/signalbox/client"
)

func (a *app) statusCmd() *cobra.Command {
	var opts client.QueueOptions
	var watch bool
	cmd := &cobra.Command{
		Use:     "status [ID]",
		Aliases: []string{"queue-status"},
		Short:   "Show the queue, or one task",
		Long: "Show the queue: in one sentence whether a person is needed, how full it is and what waits, in order. With ID\n" +
			"show one task. With --watch print a line whenever a figure or the sentence changes, until Ctrl-C.",
		RunE: run(func(ctx context.Context, args []string) error {
			if watch && len(args) == 0 {
				return a.watchQueue(ctx)
			}
			if watch {
				return usage("--watch goes with no ID").hinted("signalbox logs -f ID follows a task")
			}
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
	cmd.Flags().BoolVar(&watch, "watch", false, "print what changes, as it changes; with --json an event of GET /api/live a line")
	return cmd
}

// queueDocument is the queue with --json.
type queueDocument struct {
	api.Queue
	Health *api.Verdict `json:"health,omitempty"`
}

func (a *app) queueStatus(ctx context.Context, c *client.Client, opts client.QueueOptions) error {
	queue, err := c.Queue(ctx, opts)
	if err != nil {
		return err
	}
	status, err := c.Status(ctx)
	if err != nil {
		return err
	}
	return a.print(queueDocument{queue, status.Health}, func() error {
		if err := a.healthLine(status.Health); err != nil {
			return err
		}
		a.put("Queue: %d/%d tasks", queue.Depth, queue.MaxSize)
		ofAgents, ofTools := apart(queue.Tasks)
		if err := a.queueLines(ofAgents); err != nil {
			return err
		}
		if err := a.toolLines(queue.Tools, ofTools); err != nil {
			return err
		}
		if queue.Next != "" {
			a.note("There are more; --limit shows them.")
		}
		if running := queue.DispatchedCount - runningTools(queue.Tools); running > 0 {
			a.note("%s running; signalbox agents shows where.", plural(running, "task is", "tasks are"))
		}
		for _, p := range queue.Paused {
			a.note("%s", a.pauseLine(p))
		}
		return nil
	})
}

// apart takes the calls of tools out of a list of tasks.
func apart(tasks []api.Task) (ofAgents, ofTools []api.Task) {
	for _, t := range tasks {
		if t.Tool != "" {
			ofTools = append(ofTools, t)
		} else {
			ofAgents = append(ofAgents, t)
		}
	}
	return ofAgents, ofTools
}

func (a *app) queueLines(tasks []api.Task) error {
	sent := 0
	for i, task := range tasks {
		// The number is the position that submit and status tell; what has left
		// its queue has none.
		number := strconv.Itoa(i+1-sent) + "."
		if task.State == "dispatching" {
			number, sent = "-", sent+1
		} else if task.Position > 0 {
			number = strconv.Itoa(task.Position) + "."
		}
		a.put("  %s %s [%s] %s", number, clean(task.QueueID), a.state(task.State), clean(task.PromptPreview))
	}
	return nil
}

// toolLines shows the calls of tools that are tasks, where there are any: they
// take no place of the queue.
func (a *app) toolLines(counts *api.ToolTaskCounts, tasks []api.Task) error {
	if counts == nil || counts.Waiting+counts.Running == 0 {
		return a.queueLines(tasks)
	}
	a.put("Tool tasks: %d waiting, %d running", counts.Waiting, counts.Running)
	return a.queueLines(tasks)
}

func runningTools(counts *api.ToolTaskCounts) int {
	if counts == nil {
		return 0
	}
	return counts.Running
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
		a.put("%s [%s] %s", clean(task.QueueID), a.state(task.State), clean(task.PromptPreview))
		return a.table(a.taskRows(task))
	})
}

// taskRows are what a person may want to know of a task, a name and a value
// each.
func (a *app) taskRows(t api.Task) [][]string {
	if signalbox.IsExecutor(t.Agent) { // the director itself: its id and name are no news
		t.Agent, t.TaskID = "", ""
	}
	rows := [][]string{
		{"tool", t.Tool}, {"arguments", oneLine(t.Arguments)}, {"metadata", oneLine(t.Metadata)}, {"limit", limitText(t.TimeoutMS)},
		{"queue", t.Queue}, {"position", positionText(t)}, {"start", eta(t.ETA)},
		{"reason", t.Reason}, {"message", t.Message}, {"last error", t.LastError}, {"trouble", t.Note},
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

// oneLine is a JSON text as a table shows it.
func oneLine(raw json.RawMessage) string {
	var out bytes.Buffer
	if json.Compact(&out, raw) != nil {
		return ""
	}
	return firstLine(out.String())
}

func limitText(ms int64) string {
	if ms == 0 {
		return ""
	}
	return (time.Duration(ms) * time.Millisecond).String()
}

// modeText is how a task was called, where that is not the usual way.
func modeText(t api.Task) string {
	if t.Mode == "queue" || t.Tool != "" { // which says it
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
