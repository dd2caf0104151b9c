package model

import (
	"encoding/json"
	"fmt"
	"strings"
)

// chat is the chat-completions API.
type chat struct{}

func (chat) parse(body []byte, r *Request) (bool, error) {
	var q struct {
		Model    string           `json:"model"`
		Stream   bool             `json:"stream"`
		Messages []map[string]any `json:"messages"`
		Tools    []struct {
			Function struct {
				Name string `json:"name"`
			} `json:"function"`
		} `json:"tools"`
	}
	if err := json.Unmarshal(body, &q); err != nil {
		return false, err
	}
	r.Model = q.Model
	for _, t := range q.Tools {
		r.Tools = append(r.Tools, t.Function.Name)
	}
	var b strings.Builder
	for _, m := range q.Messages {
		texts(m["content"], &b)
	}
	r.Text = b.String()
	return q.Stream, nil
}

func (chat) usage(u Usage) map[string]any {
	return map[string]any{"prompt_tokens": u.Input, "completion_tokens": u.Output, "total_tokens": u.Input + u.Output}
}

func toolCalls(r Request, p Reply) []any {
	var all []any
	for n, t := range p.calls() {
		name, input := t.resolve(r)
		all = append(all, map[string]any{
			"index": n, "id": r.callID("call", n), "type": "function",
			"function": map[string]any{"name": name, "arguments": text(input)},
		})
	}
	return all
}

func (c chat) stream(w *sse, r Request, p Reply) {
	chunk := func(delta map[string]any, finish any) map[string]any {
		return map[string]any{
			"id": fmt.Sprintf("chatcmpl-%d", r.Turn), "object": "chat.completion.chunk", "created": 1, "model": r.Model,
			"choices": []any{map[string]any{"index": 0, "delta": delta, "finish_reason": finish}},
		}
	}
	w.event("", chunk(map[string]any{"role": "assistant", "content": ""}, nil))
	if !w.say(p, func(part string) { w.event("", chunk(map[string]any{"content": part}, nil)) }) {
		return
	}
	finish := "stop"
	if calls := toolCalls(r, p); calls != nil {
		finish = "tool_calls"
		w.event("", chunk(map[string]any{"tool_calls": calls}, nil))
	}
	last := chunk(map[string]any{}, finish)
	last["usage"] = c.usage(p.usage())
	w.event("", last)
	fmt.Fprint(w.w, "data: [DONE]\n\n")
}

func (c chat) whole(r Request, p Reply) any {
	msg, finish := map[string]any{"role": "assistant", "content": p.Text}, "stop"
	if calls := toolCalls(r, p); calls != nil {
		msg["tool_calls"], finish = calls, "tool_calls"
	}
	return map[string]any{
		"id": fmt.Sprintf("chatcmpl-%d", r.Turn), "object": "chat.completion", "created": 1, "model": r.Model,
		"choices": []any{map[string]any{"index": 0, "message": msg, "finish_reason": finish}}, "usage": c.usage(p.usage()),
	}
}

func (chat) failure(status int, message string) any {
	return responses{}.failure(status, message)
}
