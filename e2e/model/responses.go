package model

import (
	"encoding/json"
	"fmt"
	"strings"
)

// responses is the OpenAI Responses API.
type responses struct{}

func (responses) parse(body []byte, r *Request) (bool, error) {
	var q struct {
		Model  string          `json:"model"`
		Stream bool            `json:"stream"`
		Input  json.RawMessage `json:"input"`
		Tools  []struct {
			Name  string `json:"name"`
			Type  string `json:"type"`
			Tools []struct {
				Name string `json:"name"`
			} `json:"tools"` // in a namespace
		} `json:"tools"`
	}
	if err := json.Unmarshal(body, &q); err != nil {
		return false, err
	}
	r.Model = q.Model
	for _, t := range q.Tools {
		if t.Name == "" {
			t.Name = t.Type
		}
		r.Tools = append(r.Tools, t.Name)
		for _, of := range t.Tools {
			r.Tools = append(r.Tools, t.Name+"."+of.Name)
		}
	}
	var input any
	if err := json.Unmarshal(q.Input, &input); err != nil {
		return false, fmt.Errorf("input: %w", err)
	}
	var b strings.Builder
	texts(input, &b)
	r.Text = b.String()
	return q.Stream, nil
}

func (responses) body(r Request, status string, output []any, u Usage) map[string]any {
	return map[string]any{
		"id": fmt.Sprintf("resp_%d", r.Turn), "object": "response", "created_at": 1, "status": status, "model": r.Model, "output": output,
		"usage": map[string]any{
			"input_tokens": u.Input, "input_tokens_details": map[string]any{"cached_tokens": 0},
			"output_tokens": u.Output, "output_tokens_details": map[string]any{"reasoning_tokens": 0},
			"total_tokens": u.Input + u.Output,
		},
	}
}

func say(r Request, status, words string) map[string]any {
	return map[string]any{
		"id": fmt.Sprintf("item_%d", r.Turn), "type": "message", "role": "assistant", "status": status,
		"content": []any{map[string]any{"type": "output_text", "text": words, "annotations": []any{}}},
	}
}

func call(r Request, n int, t Tool) map[string]any {
	name, input := t.resolve(r)
	item := map[string]any{
		"id": r.callID("fc", n), "type": "function_call", "status": "completed",
		"call_id": r.callID("call", n), "name": name, "arguments": text(input),
	}
	if space, of, ok := strings.Cut(name, "."); ok { // as in Request.Tools: NAMESPACE.NAME
		item["namespace"], item["name"] = space, of
	}
	return item
}

func (f responses) stream(w *sse, r Request, p Reply) {
	seq := 0
	send := func(kind string, fields map[string]any) {
		fields["type"], fields["sequence_number"] = kind, seq
		seq++
		w.event(kind, fields)
	}
	send("response.created", map[string]any{"response": f.body(r, "in_progress", []any{}, p.usage())})
	output := []any{}
	if p.Text != "" || p.Hang {
		id := fmt.Sprintf("item_%d", r.Turn)
		send("response.output_item.added", map[string]any{"output_index": 0, "item": say(r, "in_progress", "")})
		ok := w.say(p, func(part string) {
			send("response.output_text.delta", map[string]any{"item_id": id, "output_index": 0, "content_index": 0, "delta": part})
		})
		if !ok {
			return
		}
		item := say(r, "completed", p.Text)
		send("response.output_item.done", map[string]any{"output_index": 0, "item": item})
		output = append(output, item)
	}
	for n, t := range p.calls() {
		item := call(r, n, t)
		send("response.output_item.added", map[string]any{"output_index": len(output), "item": item})
		send("response.output_item.done", map[string]any{"output_index": len(output), "item": item})
		output = append(output, item)
	}
	send("response.completed", map[string]any{"response": f.body(r, "completed", output, p.usage())})
}

func (f responses) whole(r Request, p Reply) any {
	output := []any{}
	if p.Text != "" {
		output = append(output, say(r, "completed", p.Text))
	}
	for n, t := range p.calls() {
		output = append(output, call(r, n, t))
	}
	return f.body(r, "completed", output, p.usage())
}

func (responses) failure(status int, message string) any {
	return map[string]any{"error": map[string]any{"type": openAIErrorType(status), "message": message, "code": nil, "param": nil}}
}

func openAIErrorType(status int) string {
	switch {
	case status == 401:
		return "authentication_error"
	case status == 429:
		return "rate_limit_exceeded"
	case status < 500:
		return "invalid_request_error"
	}
	return "server_error"
}
