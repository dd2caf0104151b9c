package cli

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/api"
	"github.com/signalbox-ai/signalbox/client"
)

// check rejects flags that exclude each other.
func (t *toolCall) check() error {
	switch {
	case !t.task && (t.wait.on || t.wait.limit != 0):
		return usage("--wait waits for a task: it needs --task").withHint("without --task the command always waits for the call, at most for --timeout")
	case !t.task && (t.key != "" || t.priority != 0):
		return usage("--idempotency-key and --priority are for a task: they need --task")
	}
	return cmp.Or(t.wait.check(), checkPriority(t.priority))
}

// callAsTask submits a call as a task and, with --wait, waits for it.
func (a *app) callAsTask(ctx context.Context, c *client.Client, t toolCall, name string) error {
	task, err := c.CreateToolTask(ctx, name,
		api.NewToolTask{Arguments: t.args, TimeoutMS: time.Duration(t.timeout).Milliseconds(), Priority: t.priority},
		client.ToolTaskOptions{IdempotencyKey: t.key, Execution: a.executionID(), Session: t.session})
	if err != nil {
		return toolFault(ctx, err)
	}
	line := queuedLine(api.SubmitResponse{QueueID: task.ID, State: task.State, Position: task.Position})
	if !t.wait.on {
		return a.print(task, func() {
			a.say("%s", line)
			a.note("%s", a.followTool(ctx, c, task.ID))
		})
	}
	a.note("%s", line)
	wait, cancel := t.wait.bound(ctx)
	defer cancel()
	return a.waitForTool(ctx, wait, c, task)
}

// waitForTool shows the progress of a tool task, and then its result.
func (a *app) waitForTool(ctx, wait context.Context, c *client.Client, task api.ToolTask) error {
	var end api.ToolTask
	_, seen, err := a.await(ctx, wait, c, task.ID, task.State, func(ctx context.Context) (_ api.Task, err error) {
		end, err = c.WaitToolTask(ctx, task.ID)
		return plainTask(end), err
	})
	if err != nil {
		return err
	}
	return a.toolEnd(ctx, c, end, seen)
}

// plainTask has the fields of a tool task that a wait needs.
func plainTask(t api.ToolTask) api.Task {
	return api.Task{QueueID: t.ID, State: t.State, Reason: t.Reason, Message: t.Message, Tool: t.ToolName}
}

// toolEnd prints the result of a tool task, unless the log has shown all of it, and
// returns the fault for its state.
func (a *app) toolEnd(ctx context.Context, c *client.Client, t api.ToolTask, seen string) error {
	err := a.print(t, func() {
		if t.Result != nil && !alreadyShown(t.Result.Content, seen) {
			a.toolText(*t.Result)
		}
	})
	f := endFault(plainTask(t))
	if err != nil || f == nil {
		return err
	}
	if a.gatewayOnly(ctx, c) {
		f = f.withHint("signalbox tools tasks %s --json has the end of its log, signalbox tools call %s calls the tool again", t.ID, t.ToolName)
	}
	f.silent = a.json // the JSON has it
	return f
}

// alreadyShown reports whether a log contains all texts of a result, in which the
// standard error of a command has a prefix.
func alreadyShown(content json.RawMessage, log string) bool {
	var blocks []struct{ Type, Text string }
	if log == "" || json.Unmarshal(content, &blocks) != nil {
		return false
	}
	for _, b := range blocks {
		if b.Text == signalbox.AnswerCut {
			continue // the log contains all of it
		}
		text := strings.TrimSpace(strings.TrimPrefix(b.Text, "stderr:\n"))
		if b.Type != "text" || text == "" || !strings.Contains(log, text) {
			return false
		}
	}
	return true
}

// taskIDOf returns the ID of the task that a call became, from the metadata of its
// answer.
func taskIDOf(res api.ToolResult) string {
	var meta struct {
		TaskID string `json:"taskId"`
	}
	if json.Unmarshal(res.Metadata, &meta) != nil || !signalbox.ValidID(meta.TaskID) {
		return ""
	}
	return meta.TaskID
}

func (a *app) toolTasksCmd() *cobra.Command {
	var opts client.ToolTasksOptions
	cmd := &cobra.Command{
		Use:   "tasks [ID]",
		Short: "List the tool tasks, or print the answer of one",
		Long: "List the tool tasks, which are tool calls that run as tasks: first the waiting and running ones in order, then the\n" +
			"ended ones, newest first. With ID print the tool's answer, as tools call does, with the exit code of a task that was\n" +
			"waited for; if the task has not ended, show its state. signalbox status, logs, why, cancel and retry accept the ids\n" +
			"of tool tasks too.",
		Example: "  signalbox tools tasks --status failed\n" +
			"  signalbox tools tasks k2m9",
		PreRunE: func(_ *cobra.Command, args []string) error {
			if len(args) == 1 && (opts.Tool != "" || opts.Status != "" || opts.Before != "") {
				return usage("--tool, --status and --before filter the list: leave them out with an ID")
			}
			if opts.Limit < 1 || opts.Limit > maxPage {
				return usage("--limit: want 1 to %d, got %d", maxPage, opts.Limit)
			}
			return nil
		},
		RunE: a.ask(func(ctx context.Context, c *client.Client, args []string) error {
			if len(args) == 1 {
				return a.toolTask(ctx, c, args[0])
			}
			return printed(a, func(page api.ToolTasks) {
				lines(a, page.Tasks, "No tool tasks. signalbox tools call NAME --task makes one.", page.Next, a.toolTaskLine)
			})(c.ToolTasks(ctx, opts))
		}),
		ValidArgsFunction: a.completeArg(toolTaskIDs),
	}
	f := cmd.Flags()
	f.StringVar(&opts.Tool, "tool", "", "only tasks of this `tool`")
	f.Var(newChoice(&opts.Status, "", "pending", "running", "completed", "failed", "cancelled"), "status", "only those that are pending, running, completed, failed or cancelled")
	pageFlags(f, &opts.Before, &opts.Limit, "tasks")
	return cmd
}

// toolTaskLine describes a tool task in one line.
func (a *app) toolTaskLine(t api.ToolTask) string {
	line := fmt.Sprintf("%s  %s [%s] %s", a.clock(t.CreatedAt), clean(t.ID), a.state(t.Status), clean(t.ToolName))
	switch {
	case t.Status == "running":
		line += " for " + ago(a.io.Now().Sub(t.UpdatedAt))
	case t.Status == "completed":
		line += " in " + t.UpdatedAt.Sub(t.CreatedAt).Round(time.Second).String()
	case t.Message != "" && t.Message != t.Status:
		line += ": " + clean(firstLine(t.Message))
	}
	return line
}

// toolTask prints the result of a tool task, or its state if it has not ended.
func (a *app) toolTask(ctx context.Context, c *client.Client, part string) error {
	id, err := resolve(ctx, c, part)
	if err != nil {
		return err
	}
	t, err := c.ToolTask(ctx, id)
	if err != nil {
		return toolTaskFault(err)
	}
	if !client.Ended(t.State) {
		return a.print(t, func() { a.say("%s", a.toolTaskLine(t)) })
	}
	return a.toolEnd(ctx, c, t, "")
}

// toolTaskFault adds the hint for an unknown tool task.
func toolTaskFault(err error) error {
	f := toFault(err)
	if f.code == "not_found" && !errors.Is(err, context.Canceled) {
		f.hint = "signalbox tools tasks lists them; signalbox status shows tasks of agents"
	}
	return f
}

func toolTaskIDs(ctx context.Context, c *client.Client) []string {
	page, _ := c.ToolTasks(ctx, client.ToolTasksOptions{Limit: 50})
	return completions(page.Tasks, func(t *api.ToolTask) (string, string) { return t.ID, t.Status + " " + t.ToolName })
}
