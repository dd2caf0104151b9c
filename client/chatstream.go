package client

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/signalbox-ai/signalbox/api"
)

// ChatEvent is one event of the stream of a chat: Name says which, and one of
// the other fields is set (none for started).
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
	Truncated bool   `json:"truncated,omitempty"` // what lies before it is no longer there
}

// ChatStream is Chat with its progress: each is called for every event until
// the end, whose result or error is returned. The first event is accepted,
// with the id of the task. A stream that breaks is opened anew with the same
// key; no event and no byte of output comes twice. An error of each ends it
// and is returned; the task goes on.
func (c *Client) ChatStream(ctx context.Context, agent string, req api.ChatRequest, opts ChatOptions, each func(ChatEvent) error) (api.ChatResponse, error) {
	return c.chatStream(ctx, agentPath(agent, "/chat"), req, opts, each)
}

// BypassStream is Bypass with its progress, as ChatStream.
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

// chatReader keeps the place from one stream to the next.
type chatReader struct {
	each    func(ChatEvent) error
	id      string // of the task, once it is accepted
	place   int    // in line, as last said
	started bool
	printed int64 // bytes of output handed over
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
	return nil // an event of later days
}

func (r *chatReader) accepted(m message) error {
	var a api.ChatAccepted
	if err := decode(m, &a); err != nil {
		return err
	}
	if r.id != "" {
		return nil // it stood in the stream before
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

// output hands on what has not been handed on before.
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
