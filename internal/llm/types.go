package llm

import (
	"context"
	"encoding/json"
)

// Role is who said a message.
type Role string

// The roles.
const (
	RoleUser      Role = "user"
	RoleAssistant Role = "assistant"
	RoleTool      Role = "tool"
)

// Message is one message of a conversation.
type Message struct {
	Role      Role       `json:"role"`
	Text      string     `json:"text,omitempty"`
	ToolCalls []ToolCall `json:"tool_calls,omitempty"` // of the assistant
	ToolID    string     `json:"tool_id,omitempty"`    // of RoleTool: the call that it answers
	ToolName  string     `json:"tool_name,omitempty"`
	IsError   bool       `json:"is_error,omitempty"`
}

// ToolCall is what the model asks for. Arguments is its raw string, which
// need not be JSON.
type ToolCall struct {
	ID        string `json:"id"`
	Name      string `json:"name"`
	Arguments string `json:"arguments"`
}

// Tool is what the model is told of a tool.
type Tool struct {
	Name        string
	Description string
	Schema      json.RawMessage // JSON Schema of its arguments
}

// Request is one turn.
type Request struct {
	Model     string
	System    string
	Messages  []Message
	Tools     []Tool
	NoTools   bool // the model may call none in this turn
	MaxTokens int
}

// Turn is what the model answered.
type Turn struct {
	Message      Message
	StopReason   string
	InputTokens  int64
	OutputTokens int64
}

// Model speaks one vendor's protocol.
type Model interface {
	// Stream runs one turn and hands on the text as it comes. When ctx ends in
	// the middle it returns the part that came, together with the error.
	Stream(ctx context.Context, r Request, text func(delta string)) (Turn, error)
}

// Toolset runs tools. Both methods are safe for use from several goroutines.
type Toolset interface {
	Tools(ctx context.Context) ([]Tool, error)
	// Call runs one tool. What the tool answered, also its own failure, is
	// text; an error says that it could not be run at all.
	Call(ctx context.Context, c ToolCall) (text string, isError bool, err error)
}
