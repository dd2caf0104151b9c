package client

import (
	"context"
	"errors"
	"net/url"

	"github.com/signalbox-ai/signalbox/api"
)

// ListTools returns the tools behind the director's gateway and the servers
// that have them. Code not_found: the director has none.
func (c *Client) ListTools(ctx context.Context) (api.Tools, error) {
	return ask[api.Tools](ctx, c, get("/api/tools", nil))
}

// ToolQueues returns the tool queues: who holds their slots and who waits.
func (c *Client) ToolQueues(ctx context.Context) ([]api.ToolQueue, error) {
	out, err := ask[api.ToolQueues](ctx, c, get("/api/tools/queues", nil))
	return out.Queues, err
}

// ToolOptions go with a call of a tool.
type ToolOptions struct {
	// Execution is the queue_id of the execution that makes the call, where
	// the token is that of an agent; default: the only one that it runs.
	Execution string
	// Progress, if set, is told how the call fares: its place in line, then what
	// the tool says of itself.
	Progress func(api.ToolProgress)
}

// CallTool calls a tool through its queue and waits for its answer, for as long
// as the context lasts: when that ends, the call leaves the line or is
// cancelled. A tool that failed answers with IsError. A call whose reply is
// lost is not made again, for it may have had an effect.
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

// toolReader hears the stream of one call.
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
