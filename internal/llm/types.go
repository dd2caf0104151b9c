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
	StopReason   StopReason
	InputTokens  int64 // with those read from and written to the vendor's cache
	OutputTokens int64
}

// StopReason is why a turn ended. Models translate their vendor's word into
// one of these where there is one, and hand on any other.
type StopReason string

// The reasons that mean something to the loop.
const (
	StopEnd     StopReason = "end"        // the model has said what it had to say
	StopTools   StopReason = "tools"      // it asks for tools
	StopLength  StopReason = "max_tokens" // it was cut off
	StopRefusal StopReason = "refusal"    // it, or the vendor's filter, will not answer
)

// Model speaks one vendor's protocol.
type Model interface {
	// Stream runs one turn and hands on the text as it comes. When ctx ends in
	// the middle, or the answer breaks off, it returns the part that came,
	// together with the error; the arguments of its last call may then be cut.
	// What the endpoint says against it is a *ModelError.
	Stream(ctx context.Context, r Request, text func(delta string)) (Turn, error)
}

// Toolset runs tools. Both methods are safe for use from several goroutines.
type Toolset interface {
	// Tools is asked before each turn, for the list may change; an order that
	// stays the same spares the vendor's cache. Of two with one name the first
	// counts.
	Tools(ctx context.Context) ([]Tool, error)
	// Call runs one tool. What the tool answered, also its own failure, is
	// text; an error says that it could not be run at all, and the model is
	// told its text. Arguments is a JSON object, in the model's own bytes. It
	// must come back soon after ctx ends.
	Call(ctx context.Context, c ToolCall) (text string, isError bool, err error)
}
