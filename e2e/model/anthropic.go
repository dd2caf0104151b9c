package model

import (
	"encoding/json"
	"fmt"
	"strings"
)

// anthropic is the Messages API.
type anthropic struct{}

func (anthropic) parse(body []byte, r *Request) (bool, error) {
	var q struct {
		Model    string           `json:"model"`
		Stream   bool             `json:"stream"`
		Messages []map[string]any `json:"messages"`
		Tools    []struct {
			Name string `json:"name"`
		} `json:"tools"`
	}
	if err := json.Unmarshal(body, &q); err != nil {
		return false, err
	}
	if len(q.Messages) == 0 {
		return false, fmt.Errorf("messages: at least one is required")
	}
	r.Model = q.Model
	for _, t := range q.Tools {
		r.Tools = append(r.Tools, t.Name)
	}
	var b strings.Builder
	for _, m := range q.Messages {
		texts(m["content"], &b)
	}
	r.Text = b.String()
	return q.Stream, nil
}

func (anthropic) message(r Request, content []any, stop any, u Usage) map[string]any {
	return map[string]any{
		"id": fmt.Sprintf("msg_%d", r.Turn), "type": "message", "role": "assistant", "model": r.Model,
		"content": content, "stop_reason": stop, "stop_sequence": nil,
		"usage": map[string]any{"input_tokens": u.Input, "output_tokens": u.Output},
	}
}

func (a anthropic) stream(w *sse, r Request, p Reply) {
	w.event("message_start", map[string]any{"type": "message_start", "message": a.message(r, []any{}, nil, Usage{p.usage().Input, 1})})
	index, stop := 0, "end_turn"
	start := func(block any) {
		w.event("content_block_start", map[string]any{"type": "content_block_start", "index": index, "content_block": block})
	}
	delta := func(d any) {
		w.event("content_block_delta", map[string]any{"type": "content_block_delta", "index": index, "delta": d})
	}
	end := func() {
		w.event("content_block_stop", map[string]any{"type": "content_block_stop", "index": index})
		index++
	}
	if p.Text != "" || p.Hang {
		start(map[string]any{"type": "text", "text": ""})
		if !w.say(p, func(part string) { delta(map[string]any{"type": "text_delta", "text": part}) }) {
			return
		}
		end()
	}
	for n, t := range p.calls() {
		stop = "tool_use"
		name, input := t.resolve(r)
		start(map[string]any{"type": "tool_use", "id": r.callID("toolu", n), "name": name, "input": map[string]any{}})
		delta(map[string]any{"type": "input_json_delta", "partial_json": text(input)})
		end()
	}
	w.event("message_delta", map[string]any{
		"type": "message_delta", "delta": map[string]any{"stop_reason": stop, "stop_sequence": nil},
		"usage": map[string]any{"output_tokens": p.usage().Output},
	})
	w.event("message_stop", map[string]any{"type": "message_stop"})
}

func (a anthropic) whole(r Request, p Reply) any {
	var content []any
	stop := "end_turn"
	if p.Text != "" {
		content = append(content, map[string]any{"type": "text", "text": p.Text})
	}
	for n, t := range p.calls() {
		stop = "tool_use"
		name, input := t.resolve(r)
		content = append(content, map[string]any{"type": "tool_use", "id": r.callID("toolu", n), "name": name, "input": input})
	}
	return a.message(r, content, stop, p.usage())
}

func (anthropic) failure(status int, message string) any {
	kind := "api_error"
	switch status {
	case 400:
		kind = "invalid_request_error"
	case 401:
		kind = "authentication_error"
	case 429:
		kind = "rate_limit_error"
	case 529:
		kind = "overloaded_error"
	}
	return map[string]any{"type": "error", "error": map[string]any{"type": kind, "message": message}}
}

// text formats a value as JSON in a string.
func text(v any) string {
	b, err := json.Marshal(v)
	if err != nil {
		panic(err) // inputs come from a test's own literals
	}
	return string(b)
}
