package cli

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
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
		Long: "Show the queue: one sentence that says whether a person is needed, how full it is, and what waits, in order.\n" +
			"With ID show one task. With --watch print a line whenever a number or the sentence changes, until Ctrl-C.",
		PreRunE: func(_ *cobra.Command, args []string) error {
			if watch && len(args) > 0 {
				return usage("--watch takes no ID").withHint("signalbox logs -f ID follows a task")
			}
			return nil
		},
		RunE: a.ask(func(ctx context.Context, c *client.Client, args []string) error {
			if len(args) == 1 {
				return printed(a, a.taskText)(taskArg((*client.Client).Task)(ctx, c, args))
			}
			return printed(a, a.queueText)(readQueue(ctx, c, opts))
		}),
		ValidArgsFunction: a.completeIDs(anyTask),
	}
	cmd.Flags().StringVar(&opts.Queue, "queue", "", "only this `queue`, such as work or agent:coder")
	cmd.Flags().IntVar(&opts.Limit, "limit", 100, "`number` of tasks to list, 1 to 1000")
	cmd.Flags().BoolVar(&watch, "watch", false, "print changes as they happen; with --json one event of GET /api/live per line")
	return a.follow(cmd, &watch, a.watchQueue)
}

// queueDocument is the JSON output of status.
type queueDocument struct {
	api.Queue
	Health *api.Verdict `json:"health,omitempty"`
}

func readQueue(ctx context.Context, c *client.Client, opts client.QueueOptions) (got queueDocument, err error) {
	if got.Queue, err = c.Queue(ctx, opts); err != nil {
		return got, err
	}
	status, err := c.Status(ctx)
	got.Health = status.Health
	return got, err
}

func (a *app) queueText(queue queueDocument) {
	a.healthLine(queue.Health)
	a.say("Queue: %d/%d tasks", queue.Depth, queue.MaxSize)
	ofAgents, ofTools := splitToolTasks(queue.Tasks)
	a.queueLines(ofAgents)
	running := queue.DispatchedCount
	if counts := queue.Tools; counts != nil { // tool tasks do not count against the queue's limit
		running -= counts.Running
		if counts.Waiting+counts.Running > 0 {
			a.say("Tool tasks: %d waiting, %d running", counts.Waiting, counts.Running)
		}
	}
	a.queueLines(ofTools)
	if queue.Next != "" {
		a.note("There are more; --limit shows them.")
	}
	if running > 0 {
		a.note("%s running; signalbox agents shows where.", plural(running, "task is", "tasks are"))
	}
	for _, p := range queue.Paused {
		a.note("%s", a.pauseLine(p))
	}
}

// splitToolTasks separates tool tasks from the others.
func splitToolTasks(tasks []api.Task) (ofAgents, ofTools []api.Task) {
	for _, t := range tasks {
		if t.Tool != "" {
			ofTools = append(ofTools, t)
		} else {
			ofAgents = append(ofAgents, t)
		}
	}
	return ofAgents, ofTools
}

// queueLines prints tasks with their positions, and with their queues if there are
// several.
func (a *app) queueLines(tasks []api.Task) {
	several := slices.ContainsFunc(tasks, func(t api.Task) bool { return t.Queue != tasks[0].Queue })
	sent := 0
	for i, task := range tasks {
		// The number is the position that submit prints; dispatched tasks have none.
		number := strconv.Itoa(i+1-sent) + "."
		if task.State == "dispatching" {
			number, sent = "-", sent+1
		} else if task.Position > 0 {
			number = strconv.Itoa(task.Position) + "."
		}
		in := ""
		if several {
			in = ", " + clean(task.Queue)
		}
		a.say("  %s %s [%s%s] %s", number, clean(task.QueueID), a.state(task.State), in, clean(task.PromptPreview))
	}
}

func (a *app) taskText(task api.Task) {
	a.say("%s [%s] %s", clean(task.QueueID), a.state(task.State), clean(task.PromptPreview))
	a.table(a.taskRows(task))
}

// waitingText describes the gate at which a task waits; "" for none.
func waitingText(t api.Task) string {
	if t.WaitingFor == nil {
		return ""
	}
	return t.WaitingFor.Text
}

// parkedText says how often a task was parked; "" for never.
func parkedText(parks int) string {
	if parks == 0 {
		return ""
	}
	return plural(parks, "time", "times")
}

// taskRows are the names and values that status ID prints.
func (a *app) taskRows(t api.Task) [][]string {
	if signalbox.IsExecutor(t.Agent) { // the director itself
		t.Agent, t.TaskID = "", ""
	}
	if t.Mode == "queue" || t.Tool != "" { // the default, or clear from the tool
		t.Mode = ""
	}
	limit, about, most := "", "", ""
	if t.TimeoutMS != 0 {
		limit = (time.Duration(t.TimeoutMS) * time.Millisecond).String()
	}
	if t.PositionApproximate {
		about = "about "
	}
	if t.MaxAttempts != 0 {
		most = fmt.Sprintf(" of %d", t.MaxAttempts)
	}
	rows := [][]string{
		{"tool", t.Tool}, {"arguments", oneLine(t.Arguments)}, {"metadata", oneLine(t.Metadata)}, {"limit", limit},
		{"waits for", waitingText(t)}, {"parked", parkedText(t.Parks)},
		{"queue", t.Queue}, {"position", count(about+"%d", t.Position)}, {"start", eta(t.ETA)},
		{"reason", t.Reason}, {"message", t.Message}, {"last error", t.LastError}, {"trouble", t.Note},
		{"agent", t.Agent}, {"agent's id", t.TaskID}, {"attempts", count("%d"+most+" failed", t.Attempts)},
		{"model", t.Model}, {"tier", t.Tier}, {"session", t.SessionID},
		{"budget", taskBudget(&t)}, {"needs", needsText(t.Needs)}, {"mode", t.Mode}, {"source", t.Source}, {"by", ownerText(t)}, {"called by", t.ParentID}, {"job", t.SourceJob}, {"retry of", t.RetryOf},
		{"created", a.clock(t.CreatedAt)}, {"queued", count("position %d when it was submitted", t.QueuedAs)}, {"not before", a.formatTimePtr(t.NotBefore)},
		{"dispatched", a.formatTimePtr(t.DispatchedAt)}, {"started", a.formatTimePtr(t.StartedAt)}, {"ended", a.formatTimePtr(t.EndedAt)},
	}
	if t.Result != nil {
		rows = append(rows, resultRows(t.Result)...)
		if t.Landing != nil {
			rows = append(rows, []string{"landing", clean(t.Landing.Text)})
		}
		if t.CostUSD > t.Result.CostUSD+1e-9 { // it was lost and run again
			rows = append(rows, []string{"cost of all runs", usd(t.CostUSD) + " USD"})
		}
	}
	for _, s := range t.Stale {
		rows = append(rows, []string{"stale", fmt.Sprintf("%s reported %s at %s, after it had lost its slot: kept separately", s.Agent, s.State, a.clock(s.At))})
	}
	for _, row := range rows {
		row[0] = "  " + row[0] + ":"
	}
	return nonEmptyRows(rows)
}

// count formats a number; "" for 0.
func count(format string, n int) string {
	if n == 0 {
		return ""
	}
	return fmt.Sprintf(format, n)
}

// oneLine is the beginning of a JSON text, compacted.
func oneLine(raw json.RawMessage) string {
	var out bytes.Buffer
	if json.Compact(&out, raw) != nil {
		return ""
	}
	return firstLine(out.String())
}

// ownerText is who submitted a task.
func ownerText(t api.Task) string {
	return cmp.Or(t.SourceUserEmail, opt("user %s", t.SourceUserID), opt("agent %s", t.SourceAgent), opt("service %s", t.SourceService))
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
		rows = append(rows, []string{"cost", usd(r.CostUSD) + " USD"})
	}
	if r.Changes != nil {
		rows = append(rows, []string{"changed", r.Changes.Summary()})
	}
	if r.Checks != nil {
		rows = append(rows, []string{"checks", r.Checks.Summary()})
	}
	return append(rows, []string{"ran with", r.Model}, []string{"output", firstLine(r.Output)})
}

// firstLine is the beginning of a text's first line.
func firstLine(s string) string {
	const most = 100
	for i, r := range []rune(s) {
		if r == '\n' || i == most {
			return string([]rune(s)[:i]) + " …"
		}
	}
	return s
}
