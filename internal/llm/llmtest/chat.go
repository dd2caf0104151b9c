package llmtest

import (
	"encoding/json"
	"fmt"
	"regexp"

	"github.com/signalbox-ai/signalbox/internal/llm"
)

var fitName = regexp.MustCompile(`^[a-zA-Z0-9_-]{1,64}$`)

type chatBody struct {
	Model    string `json:"model"`
	Stream   bool   `json:"stream"`
	Messages []struct {
		Role       string `json:"role"`
		Content    string `json:"content"`
		ToolCallID string `json:"tool_call_id"`
		ToolCalls  []struct {
			ID       string `json:"id"`
			Type     string `json:"type"`
			Function struct {
				Name      string `json:"name"`
				Arguments string `json:"arguments"`
			} `json:"function"`
		} `json:"tool_calls"`
	} `json:"messages"`
	Tools []struct {
		Type     string `json:"type"`
		Function struct {
			Name        string          `json:"name"`
			Description string          `json:"description"`
			Parameters  json.RawMessage `json:"parameters"`
		} `json:"function"`
	} `json:"tools"`
	ToolChoice          string `json:"tool_choice"`
	MaxTokens           int    `json:"max_tokens"`
	MaxCompletionTokens int    `json:"max_completion_tokens"`
}

// parseChat reads a request as the vendor does.
func parseChat(body []byte) (Request, error) {
	var q chatBody
	if err := json.Unmarshal(body, &q); err != nil {
		return Request{}, err
	}
	r := Request{Model: q.Model, ToolChoice: q.ToolChoice, MaxTokens: max(q.MaxTokens, q.MaxCompletionTokens)}
	for _, t := range q.Tools {
		r.Tools = append(r.Tools, llm.Tool{Name: t.Function.Name, Description: t.Function.Description, Schema: t.Function.Parameters})
		if !fitName.MatchString(t.Function.Name) || t.Type != "function" {
			return r, fmt.Errorf("tool %q of type %q", t.Function.Name, t.Type)
		}
	}
	var open []string // calls without an answer so far
	for i, m := range q.Messages {
		if len(open) > 0 && m.Role != "tool" {
			return r, fmt.Errorf("message %d: calls %v have no answer before it", i, open)
		}
		one := llm.Message{Role: llm.Role(m.Role), Text: m.Content, ToolID: m.ToolCallID}
		switch m.Role {
		case "system":
			r.System = m.Content
			continue
		case "tool":
			if len(open) == 0 || open[0] != m.ToolCallID {
				return r, fmt.Errorf("message %d answers %q, open are %v", i, m.ToolCallID, open)
			}
			open = open[1:]
		case "assistant":
			if m.Content == "" && len(m.ToolCalls) == 0 {
				return r, fmt.Errorf("message %d of the assistant is empty", i)
			}
		}
		for _, c := range m.ToolCalls {
			if len(c.ID) == 0 || len(c.ID) > 40 || !fitName.MatchString(c.Function.Name) || !isObject(c.Function.Arguments) {
				return r, fmt.Errorf("message %d: call %+v", i, c)
			}
			open = append(open, c.ID)
			one.ToolCalls = append(one.ToolCalls, llm.ToolCall{ID: c.ID, Name: c.Function.Name, Arguments: c.Function.Arguments})
		}
		r.Messages = append(r.Messages, one)
	}
	if len(open) > 0 || !q.Stream || len(r.Messages) == 0 {
		return r, fmt.Errorf("calls %v have no answer, stream %t, %d messages", open, q.Stream, len(r.Messages))
	}
	return r, nil
}

func isObject(s string) bool {
	var m map[string]json.RawMessage
	return json.Unmarshal([]byte(s), &m) == nil && m != nil
}

func chatRefusal(status int, message string) any {
	code := any(nil)
	if status == 401 {
		code = "invalid_api_key"
	}
	return map[string]any{"error": map[string]any{"message": message, "type": "invalid_request_error", "param": nil, "code": code}}
}

// chat streams the reply, and reports whether it reached its end.
func (o *out) chat(r Request) bool {
	chunk := func(delta map[string]any, finish any) {
		o.event("", map[string]any{
			"id": fmt.Sprintf("chatcmpl-%d", o.turn), "object": "chat.completion.chunk", "created": 1, "model": r.Model,
			"choices": []any{map[string]any{"index": 0, "delta": delta, "finish_reason": finish}},
		})
	}
	chunk(map[string]any{"role": "assistant", "content": ""}, nil)
	for _, p := range o.parts(o.reply.Text) {
		chunk(map[string]any{"content": p}, nil)
	}
	o.each(func(i int, first bool, part string) {
		c := map[string]any{"index": i, "function": map[string]any{"arguments": part}}
		if first {
			c["id"], c["type"] = o.reply.Calls[i].ID, "function"
			c["function"] = map[string]any{"name": o.reply.Calls[i].Name, "arguments": part}
		}
		chunk(map[string]any{"tool_calls": []any{c}}, nil)
	})
	if o.over() {
		return false
	}
	chunk(map[string]any{}, o.stop("stop", "tool_calls"))
	o.event("", map[string]any{
		"id": "chatcmpl", "object": "chat.completion.chunk", "created": 1, "model": r.Model, "choices": []any{},
		"usage": map[string]any{"prompt_tokens": InputTokens, "completion_tokens": OutputTokens, "total_tokens": InputTokens + OutputTokens},
	})
	fmt.Fprint(o.w, "data: [DONE]\n\n")
	return true
}
