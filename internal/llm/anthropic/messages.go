package anthropic

import (
	"cmp"
	"encoding/json"
	"strings"

	"github.com/signalbox-ai/signalbox/internal/llm"
	"github.com/signalbox-ai/signalbox/internal/llm/wire"
)

// request is the request body of a turn.
type request struct {
	Model        string        `json:"model"`
	MaxTokens    int           `json:"max_tokens"`
	System       []block       `json:"system,omitempty"`
	Messages     []message     `json:"messages"`
	Tools        []tool        `json:"tools,omitempty"`
	ToolChoice   *toolChoice   `json:"tool_choice,omitempty"`
	CacheControl *cacheControl `json:"cache_control,omitempty"`
	Stream       bool          `json:"stream"`
}

type message struct {
	Role    string  `json:"role"`
	Content []block `json:"content"`
}

// block is a text, a tool_use or a tool_result.
type block struct {
	Type      string          `json:"type"`
	Text      string          `json:"text,omitempty"`
	ID        string          `json:"id,omitempty"`
	Name      string          `json:"name,omitempty"`
	Input     json.RawMessage `json:"input,omitempty"`
	ToolUseID string          `json:"tool_use_id,omitempty"`
	Content   []block         `json:"content,omitempty"`
	IsError   bool            `json:"is_error,omitempty"`
}

type tool struct {
	Name        string         `json:"name"`
	Description string         `json:"description,omitempty"`
	InputSchema map[string]any `json:"input_schema"`
}

type toolChoice struct {
	Type string `json:"type"`
}

type cacheControl struct {
	Type string `json:"type"`
}

func newRequest(r llm.Request, names *wire.Names) request {
	q := request{Model: r.Model, MaxTokens: cmp.Or(max(r.MaxTokens, 0), DefaultMaxTokens), System: said(r.System), Messages: messages(r.Messages, names), Stream: true}
	for _, t := range r.Tools {
		q.Tools = append(q.Tools, tool{Name: names.Vendor(t.Name), Description: t.Description, InputSchema: wire.Schema(t.Schema)})
	}
	// The tools stay declared even in a turn that may not call any: the
	// conversation mentions them, and the vendor's cache begins with them.
	if len(q.Tools) > 0 && r.NoTools {
		q.ToolChoice = &toolChoice{Type: "none"}
	}
	return q
}

// messages converts the conversation to the vendor's format, in which user
// and assistant alternate: the answers to all calls of a turn, and the next
// user text, are one user message.
func messages(list []llm.Message, names *wire.Names) []message {
	var out []message
	for _, m := range list {
		role, blocks := "user", []block(nil)
		switch m.Role {
		case llm.RoleUser:
			blocks = said(m.Text)
		case llm.RoleTool:
			blocks = []block{{Type: "tool_result", ToolUseID: wire.ID(m.ToolID), IsError: m.IsError, Content: said(m.Text)}}
		case llm.RoleAssistant:
			role = "assistant"
			blocks = said(m.Text)
			for _, c := range m.ToolCalls {
				blocks = append(blocks, block{Type: "tool_use", ID: wire.ID(c.ID), Name: names.Vendor(c.Name), Input: json.RawMessage(llm.ObjectArguments(c.Arguments))})
			}
		}
		if len(blocks) == 0 {
			continue
		}
		if n := len(out); n > 0 && out[n-1].Role == role {
			out[n-1].Content = append(out[n-1].Content, blocks...)
			continue
		}
		out = append(out, message{Role: role, Content: blocks})
	}
	return out
}

// said leaves out blank text, which the vendor refuses.
func said(text string) []block {
	if strings.TrimSpace(text) == "" {
		return nil
	}
	return []block{{Type: "text", Text: text}}
}
