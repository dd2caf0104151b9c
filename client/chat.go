package client

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/signalbox-ai/signalbox/api"
)

// executionHeader identifies the execution that makes a call.
const executionHeader = "X-Signalbox-Execution"

// sessionHeader names the session that keeps a tool's slot.
const sessionHeader = "X-Signalbox-Session"

// ChatOptions are the options of a chat or a bypass task.
type ChatOptions struct {
	// IdempotencyKey, 1 to 255 printable characters, creates at most one task. A
	// second call with it waits for the same task, also after its end. Empty: a
	// random key, so that repeats after a lost reply find the task.
	IdempotencyKey string
	// Execution is the queue_id of the execution that makes the call, with an
	// agent's token; default: the only execution that the agent runs.
	Execution string
	// Async requests an answer as soon as the task is stored.
	Async bool
	// Wait is the maximum time until the answer, in whole seconds; 0: when the
	// task has ended.
	Wait time.Duration
}

// ChatReply is the answer to a chat: one of its fields is set.
type ChatReply struct {
	// Response is the answer of the agent.
	Response *api.ChatResponse
	// Accepted says that the task is stored and continues without the caller:
	// Client.Wait waits for its end. It is set with ChatOptions Async and Wait, for
	// a chat in the backlog that still waits after wait_timeout, and if the
	// director is stopping.
	Accepted *api.ChatAccepted
}

// Chat sends a message to an agent and waits for its answer, until the context
// ends. It repeats a request with a lost reply, with the same key, until
// Options.Patience has passed without an answer.
//
// An error is a *ChatError if the chat was refused (agent_busy, queue_full,
// agent_down) or did not complete; in the second case it names the execution.
// Other codes: not_found, validation_error, call_cycle, call_depth, forbidden.
func (c *Client) Chat(ctx context.Context, agent string, req api.ChatRequest, opts ChatOptions) (ChatReply, error) {
	return c.chatTo(ctx, agentPath(agent, "/chat"), req, opts)
}

// Bypass runs an isolated task at an agent outside its queue and waits for the
// answer. Errors are those of Chat; code unsupported: the agent has no bypass.
func (c *Client) Bypass(ctx context.Context, agent string, req api.BypassRequest, opts ChatOptions) (ChatReply, error) {
	return c.chatTo(ctx, agentPath(agent, "/task"), req, opts)
}

func (c *Client) chatTo(ctx context.Context, path string, body any, opts ChatOptions) (ChatReply, error) {
	req := chatCall(path, body, opts)
	p := c.newPatience()
	for lost := false; ; {
		data, status, err := c.answer(ctx, req)
		if err == nil {
			return c.chatReply(req, status, data)
		}
		if lost = lost || chatLost(err); !lost || isChatError(err) {
			return ChatReply{}, err
		}
		if waited := p.wait(ctx, err); waited != nil {
			return ChatReply{}, c.chatGone(ctx, req, waited)
		}
	}
}

func chatCall(path string, body any, opts ChatOptions) call {
	req := post(path, body)
	req.key, req.caller, req.long = opts.IdempotencyKey, opts.Execution, true
	if req.key == "" {
		req.key = NewIdempotencyKey()
	}
	switch {
	case opts.Async:
		req.prefer = "respond-async"
	case opts.Wait > 0:
		req.prefer = fmt.Sprintf("wait=%d", max(1, int(opts.Wait/time.Second)))
	}
	return req
}

func (c *Client) chatReply(req call, status int, data []byte) (reply ChatReply, err error) {
	if status == http.StatusAccepted {
		err = json.Unmarshal(data, &reply.Accepted)
	} else {
		err = json.Unmarshal(data, &reply.Response)
	}
	if err != nil || reply == (ChatReply{}) {
		return ChatReply{}, c.unexpected(status, fmt.Sprintf("%s %s did not answer with the expected JSON: %v", req.method, req.path, err))
	}
	return reply, nil
}

// chatLost reports whether the outcome of a chat is unknown. The director itself
// also answers 502 and 504, but then says how the task ended.
func chatLost(err error) bool { return !isChatError(err) && lostReply(err) }

// chatGone returns the error of a caller that gives up: without an answer it
// carries the key.
func (c *Client) chatGone(ctx context.Context, req call, err error) error {
	if ctx.Err() != nil || !passing(err) {
		return err
	}
	return c.lostKey(req, err)
}

// ChatEvent is one event of the stream of a chat. Name is its kind; one of the
// other fields is set (none for started).
type ChatEvent struct {
	Name     string // accepted, position, started or output
	Accepted *api.ChatAccepted
	Position *api.ChatPosition
	Output   *ChatOutput
}

// ChatOutput is a part of the log of a run.
type ChatOutput struct {
	After     int64  `json:"after"` // position of text in the whole log
	Text      string `json:"text"`
	Truncated bool   `json:"truncated,omitempty"` // output before it is no longer available
}

// ChatStream is Chat with progress: it calls each for every event, and returns the
// result or error of the task. The first event is accepted, with the id of the
// task. A broken stream is reopened with the same key; no event and no byte of
// output is delivered twice. If each returns an error, ChatStream returns it; the
// task continues.
func (c *Client) ChatStream(ctx context.Context, agent string, req api.ChatRequest, opts ChatOptions, each func(ChatEvent) error) (api.ChatResponse, error) {
	return c.chatStream(ctx, agentPath(agent, "/chat"), req, opts, each)
}

// BypassStream is Bypass with progress, as in ChatStream.
func (c *Client) BypassStream(ctx context.Context, agent string, req api.BypassRequest, opts ChatOptions, each func(ChatEvent) error) (api.ChatResponse, error) {
	return c.chatStream(ctx, agentPath(agent, "/task"), req, opts, each)
}

func (c *Client) chatStream(ctx context.Context, path string, body any, opts ChatOptions, each func(ChatEvent) error) (api.ChatResponse, error) {
	opts.Async, opts.Wait = false, 0 // a stream is neither
	req := chatCall(path, body, opts)
	r := chatReader{each: each}
	p := c.newPatience()
	for lost := false; ; {
		err := c.stream(ctx, req, p, &r)
		switch {
		case r.err != nil:
			return api.ChatResponse{}, r.err
		case r.result != nil:
			return *r.result, nil
		}
		broken := errors.Is(err, errStreamEnded) || r.id != ""
		if lost = lost || broken || chatLost(err); !lost || isChatError(err) {
			return api.ChatResponse{}, err
		}
		if waited := p.wait(ctx, err); waited != nil {
			return api.ChatResponse{}, c.chatGone(ctx, req, waited)
		}
	}
}

// chatReader keeps the position from one stream to the next.
type chatReader struct {
	each    func(ChatEvent) error
	id      string // of the task, once it is accepted
	place   int    // in line, as last said
	started bool
	printed int64 // bytes of output delivered
	result  *api.ChatResponse
	err     error
}

func (r *chatReader) open() bool { return true }

func (r *chatReader) message(m message) bool {
	if len(m.data) == 0 {
		return true
	}
	if err := r.take(m); err != nil {
		r.err = err
	}
	return r.err == nil && r.result == nil
}

func (r *chatReader) take(m message) error {
	switch m.name {
	case "accepted":
		return r.accepted(m)
	case "position":
		return r.position(m)
	case "started":
		if r.started {
			return nil
		}
		r.started = true
		return r.each(ChatEvent{Name: m.name})
	case "output":
		return r.output(m)
	case "result":
		return decode(m, &r.result)
	case "error":
		var body api.ChatError
		if err := decode(m, &body); err != nil {
			return err
		}
		return &ChatError{Body: body}
	}
	return nil // an event of a later version
}

func (r *chatReader) accepted(m message) error {
	var a api.ChatAccepted
	if err := decode(m, &a); err != nil {
		return err
	}
	if r.id != "" {
		return nil // already delivered from an earlier stream
	}
	r.id, r.place = a.Execution.ID, a.Position
	return r.each(ChatEvent{Name: m.name, Accepted: &a})
}

func (r *chatReader) position(m message) error {
	var p api.ChatPosition
	if err := decode(m, &p); err != nil {
		return err
	}
	if p.Position == r.place {
		return nil
	}
	r.place = p.Position
	return r.each(ChatEvent{Name: m.name, Position: &p})
}

// output delivers the output that was not delivered before.
func (r *chatReader) output(m message) error {
	var o ChatOutput
	if err := decode(m, &o); err != nil {
		return err
	}
	if seen := r.printed - o.After; seen >= int64(len(o.Text)) && o.Text != "" {
		return nil
	} else if seen > 0 {
		o.Text, o.After = o.Text[seen:], r.printed
	}
	r.printed = o.After + int64(len(o.Text))
	return r.each(ChatEvent{Name: m.name, Output: &o})
}

func decode(m message, v any) error {
	if err := json.Unmarshal(m.data, v); err != nil {
		return fmt.Errorf("the stream holds an event %q that is not the expected JSON: %w", m.name, err)
	}
	return nil
}
