package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/api"
	"github.com/signalbox-ai/signalbox/client"
)

// toolCall is a call with the flags of tools call.
type toolCall struct {
	args    json.RawMessage
	session string
	timeout durationFlag

	task     bool // run it as a task
	priority int
	key      string
	wait     waitFlags
}

func (a *app) callToolCmd() *cobra.Command {
	var t toolCall
	cmd := &cobra.Command{
		Use:   "call NAME [ARGUMENTS]",
		Short: "Call a tool through its queue and print the answer",
		Long: "Call a tool through its queue and print the answer. ARGUMENTS is a JSON object, @FILE for a file with one, or -\n" +
			"for standard input; the default is {}.\n\n" +
			"The text of the answer goes to standard output, the place in line and the tool's progress to standard error;\n" +
			"--json prints the whole answer. If the tool answers with an error, the exit code is that of a failed task.\n" +
			"Ctrl-C leaves the line or cancels the call. Inside a run of an agent the call counts as that run's.\n\n" +
			"With --task the call becomes a durable task, which goes on without a caller, and across a restart of the director\n" +
			"if the tool allows it. The command prints the id and, with --wait, the log and then the answer, with the exit\n" +
			"code of submit --wait. A call of an async tool always becomes a task; without --task the command prints the id\n" +
			"at once.",
		Example: "  signalbox tools call search__find '{\"query\": \"signal boxes\"}'\n" +
			"  signalbox tools call rest__weather @arguments.json --timeout 20s\n" +
			"  signalbox tools call browser__open '{\"url\": \"http://127.0.0.1:3000/\"}' --session checkout-test\n" +
			"  signalbox tools call report '{\"month\": \"2026-10\"}' --task --wait --timeout 1h",
		PreRunE: func(_ *cobra.Command, args []string) (err error) {
			if err = t.check(); err == nil {
				t.args, err = a.toolArguments(firstArg(args[1:]))
			}
			return err
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			if t.task {
				return a.askRetrying(func(ctx context.Context, c *client.Client, _ []string) error { return a.callAsTask(ctx, c, t, args[0]) })(cmd, args)
			}
			return a.ask(func(ctx context.Context, c *client.Client, _ []string) error { return a.callTool(ctx, c, t, args[0]) })(cmd, args)
		},
		ValidArgsFunction: a.completeTools,
	}
	f := cmd.Flags()
	f.StringVar(&t.session, "session", "", "`name` of a session that keeps the tool's slot between calls, if its queue has leases")
	f.Var(&t.timeout, "timeout", "give up the call after this long, including the wait in line; with --task limit its run (default: the tool's own timeout)")
	f.BoolVar(&t.task, "task", false, "make the call a durable task and print its id")
	f.IntVar(&t.priority, "priority", 0, "with --task: `number` from -10 to 10; each step overtakes tasks submitted up to a minute before")
	f.StringVar(&t.key, "idempotency-key", "", "with --task: make at most one task per `key` (default: a new key)")
	t.wait.register(cmd)
	return cmd
}

// maxToolArguments is the director's limit, in bytes.
const maxToolArguments = 1 << 20

// toolArguments reads the arguments of a call.
func (a *app) toolArguments(given string) (json.RawMessage, error) {
	from := "ARGUMENTS"
	var in io.Reader = strings.NewReader(given)
	switch {
	case given == "":
		return nil, nil
	case given == "-":
		from, in = "standard input", a.io.In
	case strings.HasPrefix(given, "@"):
		from = given[1:]
		file, err := os.Open(a.absPath(from))
		if err != nil {
			return nil, usage("the arguments cannot be read: %v", err)
		}
		defer file.Close()
		in = file
	}
	data, err := io.ReadAll(io.LimitReader(in, maxToolArguments+1))
	switch {
	case err != nil:
		return nil, fmt.Errorf("read the arguments from %s: %w", from, err)
	case len(data) > maxToolArguments:
		return nil, usage("the arguments in %s are larger than %d bytes", from, maxToolArguments)
	}
	data = bytes.TrimSpace(data)
	if !json.Valid(data) || data[0] != '{' {
		return nil, usage("%s: want a JSON object such as {\"query\": \"signal boxes\"}", clean(from)).withHint("put it in single quotes, or into a file: @FILE")
	}
	return data, nil
}

// absPath makes a path absolute, relative to the working folder.
func (a *app) absPath(path string) string {
	if filepath.IsAbs(path) {
		return path
	}
	return filepath.Join(a.io.Dir, path)
}

func (a *app) callTool(ctx context.Context, c *client.Client, t toolCall, name string) error {
	if t.timeout > 0 {
		var cancel context.CancelFunc
		late := failure(exitLost, "timeout", "the call was given up after %s", time.Duration(t.timeout))
		ctx, cancel = context.WithTimeoutCause(ctx, time.Duration(t.timeout), late)
		defer cancel()
	}
	res, err := c.CallTool(ctx, name, api.ToolCall{Arguments: t.args, Session: t.session}, client.ToolOptions{
		Execution: a.executionID(), Progress: a.toolProgress(),
	})
	a.line.clear()
	if err != nil {
		return toolFault(ctx, err)
	}
	if err := a.print(res, func() { a.toolText(res) }); err != nil {
		return err
	}
	if id := taskIDOf(res); id != "" && !a.json {
		a.note("The call is a task now: %s", a.followTool(ctx, c, id))
	}
	if res.IsError {
		return &fault{exit: exitFailed, code: "tool_error", message: "the tool answered with an error", silent: true}
	}
	return nil
}

// toolProgress prints the progress of a call to standard error, without
// repetitions.
func (a *app) toolProgress() func(api.ToolProgress) {
	last := ""
	return func(p api.ToolProgress) {
		text := p.Message
		switch {
		case p.Position > 0:
			text = fmt.Sprintf("Queued at position %d", p.Position)
		case p.Total > 0:
			text = strings.TrimSpace(fmt.Sprintf("%s (%g of %g)", text, p.Progress, p.Total))
		}
		if text == "" || text == last {
			return
		}
		last = text
		a.note("%s", text)
	}
}

// toolFault sets the exit codes of errors that only tool calls have.
func toolFault(ctx context.Context, err error) error {
	var late *fault
	if errors.As(context.Cause(ctx), &late) {
		return late
	}
	f := toFault(err)
	switch f.code {
	case "tool_failed":
		f.exit = exitFailed
	case "tool_timeout", "tool_queue_timeout", "tool_lost":
		f.exit = exitLost
	case "tool_queue_full":
		f.exit = exitQueueFull
	case "tool_down":
		f.exit = exitConflict
	case "not_found":
		const where = "signalbox tools lists"
		switch {
		case strings.Contains(f.message, where):
			f.hint = ""
		case f.hint == hints["not_found"]:
			f.hint = where + " the tools"
		}
	}
	return f
}

// toolText prints the text of a tool's answer, and placeholders for other content.
func (a *app) toolText(res api.ToolResult) {
	var blocks []struct {
		Type     string `json:"type"`
		Text     string `json:"text"`
		MIME     string `json:"mimeType"`
		Data     string `json:"data"`
		URI      string `json:"uri"`
		Resource struct {
			URI  string `json:"uri"`
			Text string `json:"text"`
		} `json:"resource"`
	}
	if err := json.Unmarshal(res.Content, &blocks); err != nil {
		a.unwritten = fmt.Errorf("the tool's answer has content that this command does not know, see --json: %w", err)
	}
	for _, b := range blocks {
		text := b.Text
		if b.Type == "text" && text == signalbox.AnswerCut && res.Truncated() {
			a.note("%s", text) // a note of ours, not output of the tool
			continue
		}
		switch b.Type {
		case "text":
		case "resource":
			if text = b.Resource.Text; text == "" {
				text = "[resource " + b.Resource.URI + "]"
			}
		case "resource_link":
			text = b.URI
		default:
			text = strings.TrimSpace(fmt.Sprintf("[%s %s", b.Type, b.MIME)) + fmt.Sprintf(", %d characters: see --json]", len(b.Data))
		}
		a.write(a.forOut(strings.TrimSuffix(text, "\n")) + "\n")
	}
	if len(blocks) == 0 && len(res.StructuredContent) > 0 {
		a.say("%s", a.forOut(string(res.StructuredContent)))
	}
}

// gatewayOnly reports whether the server is a gateway without a director. A gateway
// has tool tasks, but neither logs nor retry.
func (a *app) gatewayOnly(ctx context.Context, c *client.Client) bool {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 2*time.Second) // also after an interrupt
	defer cancel()
	_, err := c.Status(ctx)
	return client.Code(err) == "not_found"
}

// followTool returns a hint on how to follow a tool task.
func (a *app) followTool(ctx context.Context, c *client.Client, id string) string {
	if a.gatewayOnly(ctx, c) {
		return fmt.Sprintf("signalbox tools tasks %s shows its state and its answer.", id)
	}
	return fmt.Sprintf("signalbox logs -f %s follows it, signalbox tools tasks %s shows its answer.", id, id)
}

// resumeHint returns a hint on how to come back to a task of either kind.
func (a *app) resumeHint(ctx context.Context, c *client.Client, id string) string {
	if a.gatewayOnly(ctx, c) {
		return fmt.Sprintf("come back with signalbox tools tasks %s, stop it with signalbox cancel %s", id, id)
	}
	return comeBack(id)
}

// cancelTask cancels a task. If the queue does not have it, or the caller may not
// cancel it there, it may be a tool task of the caller.
func cancelTask(c *client.Client, ctx context.Context, id string) (api.Cancelled, error) {
	got, err := c.Cancel(ctx, id)
	if code := client.Code(err); code == "not_found" || code == "forbidden" {
		t, toolErr := c.CancelToolTask(ctx, id)
		if toolErr == nil || client.Code(toolErr) == "already_ended" {
			got, err = api.Cancelled{QueueID: id, State: t.State, WasDispatched: !client.Ended(t.State), Message: t.Message}, toolErr
		}
	}
	if err == nil && client.Ended(got.State) && got.State != "cancelled" {
		return got, failure(exitConflict, "already_ended", "%s ended before it could be cancelled: %s", id, got.State).withHint("signalbox status %s", id)
	}
	return got, err
}
