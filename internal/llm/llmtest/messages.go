package llmtest

import (
	"encoding/json"
	"fmt"

	"github.com/signalbox-ai/signalbox/internal/llm"
)

type messagesBody struct {
	Model  string `json:"model"`
	Stream bool   `json:"stream"`
	System []struct {
		Text string `json:"text"`
	} `json:"system"`
	Messages []struct {
		Role    string  `json:"role"`
		Content []block `json:"content"`
	} `json:"messages"`
	Tools []struct {
		Name        string          `json:"name"`
		Description string          `json:"description"`
		InputSchema json.RawMessage `json:"input_schema"`
	} `json:"tools"`
	ToolChoice struct {
		Type string `json:"type"`
	} `json:"tool_choice"`
	MaxTokens int `json:"max_tokens"`
}

type block struct {
	Type      string          `json:"type"`
	Text      string          `json:"text"`
	ID        string          `json:"id"`
	Name      string          `json:"name"`
	Input     json.RawMessage `json:"input"`
	ToolUseID string          `json:"tool_use_id"`
	IsError   bool            `json:"is_error"`
	Content   []struct {
		Text string `json:"text"`
	} `json:"content"`
}

// parseMessages reads a request as the vendor does.
func parseMessages(body []byte) (Request, error) {
	var q messagesBody
	if err := json.Unmarshal(body, &q); err != nil {
		return Request{}, err
	}
	r := Request{Model: q.Model, MaxTokens: q.MaxTokens, ToolChoice: q.ToolChoice.Type}
	for _, s := range q.System {
		r.System += s.Text
	}
	for _, t := range q.Tools {
		r.Tools = append(r.Tools, llm.Tool{Name: t.Name, Description: t.Description, Schema: t.InputSchema})
		var s struct{ Type string }
		if !fitName.MatchString(t.Name) || json.Unmarshal(t.InputSchema, &s) != nil || s.Type != "object" {
			return r, fmt.Errorf("tool %q with schema %s", t.Name, t.InputSchema)
		}
	}
	seen := map[string]bool{}
	var open []string
	for i, m := range q.Messages {
		if want := []string{"user", "assistant"}[i%2]; m.Role != want || len(m.Content) == 0 {
			return r, fmt.Errorf("message %d with %d blocks is of %s, expected %s", i, len(m.Content), m.Role, want)
		}
		one := llm.Message{Role: llm.Role(m.Role)}
		for n, b := range m.Content {
			switch b.Type {
			case "text":
				if blank(b.Text) || len(open) > 0 {
					return r, fmt.Errorf("message %d, block %d: text %q while calls %v wait", i, n, b.Text, open)
				}
				one.Text += b.Text
			case "tool_use":
				if !fitName.MatchString(b.ID) || seen[b.ID] || !fitName.MatchString(b.Name) || !isObject(string(b.Input)) {
					return r, fmt.Errorf("message %d, block %d: %+v", i, n, b)
				}
				seen[b.ID] = true
				one.ToolCalls = append(one.ToolCalls, llm.ToolCall{ID: b.ID, Name: b.Name, Arguments: string(b.Input)})
			case "tool_result":
				if m.Role != "user" || len(open) == 0 || open[0] != b.ToolUseID {
					return r, fmt.Errorf("message %d answers %q, open are %v", i, b.ToolUseID, open)
				}
				open = open[1:]
				r.Messages = append(r.Messages, result(b))
			}
		}
		if len(open) > 0 {
			return r, fmt.Errorf("message %d leaves calls %v without an answer", i, open)
		}
		for _, c := range one.ToolCalls {
			open = append(open, c.ID)
		}
		if one.Text != "" || len(one.ToolCalls) > 0 {
			r.Messages = append(r.Messages, one)
		}
	}
	if len(open) > 0 || !q.Stream || q.MaxTokens < 1 || len(q.Messages) == 0 || q.Messages[len(q.Messages)-1].Role != "user" {
		return r, fmt.Errorf("calls %v have no answer, stream %t, %d tokens", open, q.Stream, q.MaxTokens)
	}
	return r, nil
}

func result(b block) llm.Message {
	m := llm.Message{Role: llm.RoleTool, ToolID: b.ToolUseID, IsError: b.IsError}
	for _, c := range b.Content {
		m.Text += c.Text
	}
	return m
}

func messagesRefusal(status int, message string) any {
	kind := map[int]string{400: "invalid_request_error", 401: "authentication_error", 404: "not_found_error", 429: "rate_limit_error", 529: "overloaded_error"}[status]
	return map[string]any{"type": "error", "error": map[string]any{"type": kind, "message": message}}
}

// messages streams the reply, and reports whether it reached its end.
func (o *out) messages(r Request) bool {
	o.event("message_start", map[string]any{"type": "message_start", "message": map[string]any{
		"id": fmt.Sprintf("msg_%d", o.turn), "type": "message", "role": "assistant", "model": r.Model, "content": []any{},
		"stop_reason": nil, "stop_sequence": nil, "usage": map[string]any{"input_tokens": InputTokens, "output_tokens": 1},
	}})
	at := 0
	start := func(b any) {
		o.event("content_block_start", map[string]any{"type": "content_block_start", "index": at, "content_block": b})
	}
	delta := func(index int, d any) {
		o.event("content_block_delta", map[string]any{"type": "content_block_delta", "index": index, "delta": d})
	}
	end := func(index int) {
		o.event("content_block_stop", map[string]any{"type": "content_block_stop", "index": index})
	}
	if o.reply.Text != "" {
		start(map[string]any{"type": "text", "text": ""})
		for _, p := range o.parts(o.reply.Text) {
			delta(at, map[string]any{"type": "text_delta", "text": p})
		}
		end(at)
		at++
	}
	first := at
	o.each(func(i int, begins bool, part string) {
		if begins {
			at = first + i
			start(map[string]any{"type": "tool_use", "id": o.reply.Calls[i].ID, "name": o.reply.Calls[i].Name, "input": map[string]any{}})
		}
		if part != "" {
			delta(first+i, map[string]any{"type": "input_json_delta", "partial_json": part})
		}
	})
	if o.over() {
		return false
	}
	for i := range o.reply.Calls {
		end(first + i)
	}
	o.event("message_delta", map[string]any{
		"type": "message_delta", "delta": map[string]any{"stop_reason": o.stop("end_turn", "tool_use"), "stop_sequence": nil},
		"usage": map[string]any{"output_tokens": OutputTokens},
	})
	o.event("message_stop", map[string]any{"type": "message_stop"})
	return true
}
