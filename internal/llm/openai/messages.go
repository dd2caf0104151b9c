package openai

import (
	"github.com/signalbox-ai/signalbox/internal/llm"
	"github.com/signalbox-ai/signalbox/internal/llm/wire"
)

// request is the request body of a turn.
type request struct {
	Model               string         `json:"model"`
	Messages            []message      `json:"messages"`
	Tools               []tool         `json:"tools,omitempty"`
	ToolChoice          string         `json:"tool_choice,omitempty"`
	MaxTokens           int            `json:"max_tokens,omitempty"`
	MaxCompletionTokens int            `json:"max_completion_tokens,omitempty"`
	Stream              bool           `json:"stream"`
	StreamOptions       *streamOptions `json:"stream_options,omitempty"`
}

type streamOptions struct {
	IncludeUsage bool `json:"include_usage"`
}

type message struct {
	Role       string  `json:"role"`
	Content    *string `json:"content,omitempty"` // required, even if empty, except for the assistant
	ToolCalls  []call  `json:"tool_calls,omitempty"`
	ToolCallID string  `json:"tool_call_id,omitempty"`
}

type call struct {
	ID       string `json:"id"`
	Type     string `json:"type"`
	Function struct {
		Name      string `json:"name"`
		Arguments string `json:"arguments"`
	} `json:"function"`
}

type tool struct {
	Type     string   `json:"type"`
	Function function `json:"function"`
}

type function struct {
	Name        string         `json:"name"`
	Description string         `json:"description,omitempty"`
	Parameters  map[string]any `json:"parameters"`
}

func (m *Model) request(r llm.Request, names *wire.Names) request {
	q := request{Model: r.Model, Messages: messages(r, names), Stream: true}
	if !m.noUsage.Load() {
		q.StreamOptions = &streamOptions{IncludeUsage: true}
	}
	if limit := max(r.MaxTokens, 0); m.oldLimit.Load() {
		q.MaxTokens = limit
	} else {
		q.MaxCompletionTokens = limit
	}
	for _, t := range r.Tools {
		q.Tools = append(q.Tools, tool{Type: "function", Function: function{Name: names.Vendor(t.Name), Description: t.Description, Parameters: wire.Schema(t.Schema)}})
	}
	if len(q.Tools) > 0 && r.NoTools {
		q.ToolChoice = "none"
	}
	return q
}

// messages converts the conversation to the vendor's format. Arguments are
// sent back in the model's own bytes.
func messages(r llm.Request, names *wire.Names) []message {
	var out []message
	if r.System != "" {
		out = append(out, message{Role: "system", Content: &r.System})
	}
	for _, m := range r.Messages {
		switch m.Role {
		case llm.RoleUser:
			out = append(out, message{Role: "user", Content: &m.Text})
		case llm.RoleTool:
			out = append(out, message{Role: "tool", Content: &m.Text, ToolCallID: wire.ID(m.ToolID)})
		case llm.RoleAssistant:
			out = append(out, assistant(m, names))
		}
	}
	return out
}

func assistant(m llm.Message, names *wire.Names) message {
	a := message{Role: "assistant"}
	if m.Text != "" {
		a.Content = &m.Text
	}
	for _, c := range m.ToolCalls {
		v := call{ID: wire.ID(c.ID), Type: "function"}
		v.Function.Name, v.Function.Arguments = names.Vendor(c.Name), llm.ObjectArguments(c.Arguments)
		a.ToolCalls = append(a.ToolCalls, v)
	}
	return a
}
