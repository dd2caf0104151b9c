package api

import (
	"encoding/json"
	"time"
)

// Tools is the answer to GET /api/tools.
type Tools struct {
	Tools   []Tool       `json:"tools"`   // by name
	Servers []ToolServer `json:"servers"` // by name
}

// Tool is a tool behind the gateway.
type Tool struct {
	Name           string          `json:"name"` // server__tool or rest__name
	Title          string          `json:"title,omitempty"`
	Description    string          `json:"description,omitempty"`
	Server         string          `json:"server"`
	Kind           string          `json:"kind"` // mcp, rest, openapi, command or internal
	Queue          string          `json:"queue,omitempty"`
	TimeoutSeconds float64         `json:"timeout_seconds"`   // 0: no limit, of an async one
	Async          bool            `json:"async,omitempty"`   // a call becomes a task and is answered with its id
	Secrets        []string        `json:"secrets,omitempty"` // arguments that are kept encrypted and hidden in all output
	InputSchema    json.RawMessage `json:"inputSchema"`       // JSON Schema, as the upstream wrote it
	OutputSchema   json.RawMessage `json:"outputSchema,omitempty"`
}

// ToolServer is what provides tools.
type ToolServer struct {
	Name     string    `json:"name"`
	Kind     string    `json:"kind"`
	State    string    `json:"state"` // starting, ready, failed or stopped
	Error    string    `json:"error,omitempty"`
	Restarts int       `json:"restarts"`
	PIDs     []int     `json:"pids,omitempty"`
	Tools    int       `json:"tools"`
	Since    time.Time `json:"since"`
}

// ToolQueues is the answer to GET /api/tools/queues.
type ToolQueues struct {
	Queues []ToolQueue `json:"queues"` // by name
}

// ToolQueue is a tool queue at one moment.
type ToolQueue struct {
	Name            string       `json:"name"`
	Concurrent      int          `json:"concurrent"`
	InUse           int          `json:"in_use"`
	Depth           int          `json:"depth"` // calls in line
	MaxWaitSeconds  float64      `json:"max_wait_seconds,omitempty"`
	MaxWaiters      int          `json:"max_waiters,omitempty"`
	LeaseIdle       float64      `json:"lease_idle_seconds,omitempty"`
	LeaseHold       float64      `json:"lease_hold_seconds,omitempty"`
	Shared          bool         `json:"shared,omitempty"` // by all directors over the store: holders and waiters are those of all
	Holders         []ToolHolder `json:"holders"`
	Waiters         []ToolWaiter `json:"waiters"`                     // in order, at most 1000
	WaitersNotShown int          `json:"waiters_not_shown,omitempty"` // beyond those
}

// ToolHolder is who has a slot of a tool queue.
type ToolHolder struct {
	Session string     `json:"session,omitempty"`
	Agent   string     `json:"agent,omitempty"`
	Tool    string     `json:"tool,omitempty"`
	QueueID string     `json:"queue_id,omitempty"` // the task that the call is made by, or is
	Since   *time.Time `json:"since,omitempty"`
	Leased  bool       `json:"leased,omitempty"`  // the session keeps it from call to call
	Idle    bool       `json:"idle,omitempty"`    // of a lease: no call is under way
	Expires *time.Time `json:"expires,omitempty"` // of a lease: when it ends if nothing happens
	Behind  int        `json:"behind,omitempty"`  // calls of the session that wait for its own slot
	// Director is the instance at which the call came in, of a shared queue.
	Director string `json:"director,omitempty"`
}

// ToolWaiter is who stands in the line of a tool queue.
type ToolWaiter struct {
	Position int       `json:"position"`
	Session  string    `json:"session,omitempty"`
	Agent    string    `json:"agent,omitempty"`
	Tool     string    `json:"tool,omitempty"`
	QueueID  string    `json:"queue_id,omitempty"` // the task that the call is made by, or is
	Since    time.Time `json:"since"`
	Director string    `json:"director,omitempty"` // as of a holder
}

// ToolCall is the body of POST /api/tools/{tool}/call.
type ToolCall struct {
	Arguments json.RawMessage `json:"arguments,omitempty"` // an object
	Session   string          `json:"session,omitempty"`   // keeps a session lease from call to call; 1 to 128 characters
}

// ToolProgress is the data of the event progress in the stream of a call.
type ToolProgress struct {
	Progress float64 `json:"progress"`
	Total    float64 `json:"total,omitempty"`
	Message  string  `json:"message,omitempty"`
	Position int     `json:"position,omitempty"` // in line, while the call waits
}

// ToolResult is the answer to POST /api/tools/{tool}/call: an MCP
// CallToolResult. A tool that failed answers with isError, not with an error.
type ToolResult struct {
	Content           json.RawMessage `json:"content"` // an array of content blocks
	StructuredContent json.RawMessage `json:"structuredContent,omitempty"`
	IsError           bool            `json:"isError,omitempty"`
	Meta              json.RawMessage `json:"_meta,omitempty"`
	// Metadata is {"agent": …} of a command tool, and what the seed
	// async-task-queue says of a call that became a task.
	// It has "truncated": true where the answer does not hold all that the tool
	// printed.
	Metadata json.RawMessage `json:"metadata,omitempty"`
}

// Truncated reports whether the tool printed more than the answer holds.
func (r *ToolResult) Truncated() bool {
	var meta struct {
		Truncated bool `json:"truncated"`
	}
	return r != nil && json.Unmarshal(r.Metadata, &meta) == nil && meta.Truncated
}
