package client

import (
	"context"
	"errors"
	"net/url"

	"github.com/signalbox-ai/signalbox/api"
)

// ListTools returns the tools behind the director's gateway and the servers that
// provide them. Code not_found: the director has none.
func (c *Client) ListTools(ctx context.Context) (api.Tools, error) {
	return ask[api.Tools](ctx, c, get("/api/tools", nil))
}

// ToolQueues returns the tool queues: who holds their slots and who waits.
func (c *Client) ToolQueues(ctx context.Context) ([]api.ToolQueue, error) {
	out, err := ask[api.ToolQueues](ctx, c, get("/api/tools/queues", nil))
	return out.Queues, err
}

// SetToolQueue sets the concurrency and the rate of a tool queue until the director
// restarts. New slots go to waiting calls at once; removed ones drain.
//
// Codes: not_found, validation_error.
func (c *Client) SetToolQueue(ctx context.Context, queue string, req api.SetToolQueue) (api.ToolQueueSet, error) {
	return ask[api.ToolQueueSet](ctx, c, put("/api/tools/queues/"+url.PathEscape(queue), req))
}

// OpenToolQueue opens a closed tool queue before its time, at all directors that
// share it.
//
// Codes: not_found.
func (c *Client) OpenToolQueue(ctx context.Context, queue string) (api.ToolQueueOpened, error) {
	return ask[api.ToolQueueOpened](ctx, c, post("/api/tools/queues/"+url.PathEscape(queue)+"/open", nil))
}

// ToolOptions are the options of a tool call.
type ToolOptions struct {
	// Execution is the queue_id of the execution that makes the call, with an
	// agent's token; default: the only execution that the agent runs.
	Execution string
	// Progress, if set, receives the progress of the call: its place in line, then
	// what the tool reports.
	Progress func(api.ToolProgress)
}

// CallTool calls a tool through its queue and waits for its answer. If the context
// ends, the call leaves the line or is cancelled. A tool that failed answers with
// IsError. A call is not repeated after a lost reply, because it may have had an
// effect.
//
// Codes: not_found, validation_error, tool_down, tool_lost, tool_failed, tool_timeout,
// tool_queue_full, tool_queue_timeout, too_large.
func (c *Client) CallTool(ctx context.Context, name string, tool api.ToolCall, opts ToolOptions) (api.ToolResult, error) {
	var out api.ToolResult
	req := post("/api/tools/"+url.PathEscape(name)+"/call", tool)
	req.long, req.caller = true, opts.Execution
	if opts.Progress == nil {
		return ask[api.ToolResult](ctx, c, req)
	}
	r := toolReader{progress: opts.Progress}
	err := c.stream(ctx, req, c.newPatience(), &r)
	switch {
	case r.err != nil:
		return out, r.err
	case r.result != nil:
		return *r.result, nil
	case ctx.Err() != nil:
		return out, context.Cause(ctx)
	case errors.Is(err, errStreamEnded):
		err = &UnreachableError{URL: c.URL(), Sent: true, Err: err}
	}
	return out, err
}

// toolReader reads the stream of one call.
type toolReader struct {
	progress func(api.ToolProgress)
	result   *api.ToolResult
	err      error
}

func (r *toolReader) open() bool { return true }

func (r *toolReader) message(m message) bool {
	switch m.name {
	case "progress":
		var p api.ToolProgress
		if r.err = decode(m, &p); r.err == nil {
			r.progress(p)
		}
	case "result":
		r.err = decode(m, &r.result)
	case "error":
		var body api.Error
		if r.err = decode(m, &body); r.err == nil {
			r.err = &Error{Body: body}
		}
	}
	return r.err == nil && r.result == nil
}

// ToolTaskOptions are the options of a tool call that becomes a task.
type ToolTaskOptions struct {
	// IdempotencyKey and Execution are as in SubmitOptions.
	IdempotencyKey string
	Execution      string
	// Session keeps a session lease from call to call; 1 to 128 characters.
	Session string
}

// CreateToolTask calls a tool as a durable task, which continues even if the caller
// disconnects. Any tool can be called this way. After a lost reply it repeats the
// request with the same key, as Submit does.
//
// Codes: not_found (the tool), validation_error, queue_full,
// idempotency_conflict, unsupported (the gateway has no queue).
func (c *Client) CreateToolTask(ctx context.Context, tool string, task api.NewToolTask, opts ToolTaskOptions) (api.ToolTask, error) {
	req := post("/api/tools/"+url.PathEscape(tool)+"/tasks", task)
	req.caller, req.session, req.key = opts.Execution, opts.Session, opts.IdempotencyKey
	return keyed[api.ToolTask](ctx, c, req)
}

// ToolTask returns a tool task by its full id, with its result when it has ended.
// Code not_found: it never existed, has been pruned, is not a tool task, or the
// caller may not see it.
func (c *Client) ToolTask(ctx context.Context, id string) (api.ToolTask, error) {
	return ask[api.ToolTask](ctx, c, get(toolTaskPath(id, ""), nil))
}

// WaitToolTask returns a tool task when it has ended. It polls with ?wait= and
// survives restarts of the director (see Options.Patience).
func (c *Client) WaitToolTask(ctx context.Context, id string) (api.ToolTask, error) {
	return waitFor(ctx, c, toolTaskPath(id, ""), func(task api.ToolTask) bool { return Ended(task.State) })
}

// ToolTasksOptions select the tasks that ToolTasks returns. Empty fields do not
// restrict.
type ToolTasksOptions struct {
	Tool   string
	Status string // pending, running, completed, failed or cancelled
	Limit  int    // of one page, 1 to 1000; 0: 100
	Before string // cursor: Next of the page before
}

// ToolTasks returns one page of tool tasks: first those that have not ended, in
// order, then the ended ones, newest end first.
func (c *Client) ToolTasks(ctx context.Context, opts ToolTasksOptions) (api.ToolTasks, error) {
	query := values("tool", opts.Tool, "status", opts.Status, "limit", number(opts.Limit), "before", opts.Before)
	return ask[api.ToolTasks](ctx, c, get("/api/tools/tasks", query))
}

// CancelToolTask cancels a tool task. Status "running" in the answer means that its
// processes are still being stopped.
//
// Codes: not_found, already_ended, forbidden (it has another owner).
func (c *Client) CancelToolTask(ctx context.Context, id string) (api.ToolTask, error) {
	return ask[api.ToolTask](ctx, c, post(toolTaskPath(id, "/cancel"), nil))
}

func toolTaskPath(id, below string) string { return "/api/tools/tasks/" + url.PathEscape(id) + below }

// Doctor returns the results of the director's self-check.
func (c *Client) Doctor(ctx context.Context) (api.Doctor, error) {
	return ask[api.Doctor](ctx, c, get("/api/doctor", nil))
}
