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
	TimeoutSeconds float64         `json:"timeout_seconds"`   // 0: no limit, for an async tool
	Async          bool            `json:"async,omitempty"`   // a call becomes a task and is answered with its id
	Secrets        []string        `json:"secrets,omitempty"` // arguments that are stored encrypted and hidden in all output
	InputSchema    json.RawMessage `json:"inputSchema"`       // JSON Schema, as the upstream provides it
	OutputSchema   json.RawMessage `json:"outputSchema,omitempty"`
}

// ToolServer provides tools.
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
	Rate            *ToolRate    `json:"rate,omitempty"`
	PerKey          bool         `json:"per_key,omitempty"`     // concurrent, max_waiters and rate apply to each caller, session or value separately
	Keys            int          `json:"keys,omitempty"`        // number of keys in use
	Closed          *ToolClosed  `json:"closed,omitempty"`      // no calls start
	KeysClosed      int          `json:"keys_closed,omitempty"` // with per_key: number of closed keys; closed is the one that opens last
	Held            int          `json:"held,omitempty"`        // waiters blocked by the rate or a closed queue although a slot may be free
	Shared          bool         `json:"shared,omitempty"`      // shared by all directors of the store: holders and waiters are those of all
	Holders         []ToolHolder `json:"holders"`
	Waiters         []ToolWaiter `json:"waiters"`                     // in order, at most 1000
	WaitersNotShown int          `json:"waiters_not_shown,omitempty"` // beyond those
}

// ToolRate limits how often calls of a tool queue start: n in each per_seconds, and up to burst
// more that were saved while the queue was idle.
type ToolRate struct {
	N          int        `json:"n"`
	PerSeconds float64    `json:"per_seconds"`
	Burst      int        `json:"burst"`
	Left       *int       `json:"left,omitempty"` // calls that may start now; not with per_key
	Next       *time.Time `json:"next,omitempty"` // when the next call may start, if none is left
}

// ToolClosed says until when a tool queue starts no calls. It opens by itself.
type ToolClosed struct {
	Until time.Time  `json:"until"`
	Why   string     `json:"why,omitempty"`
	Since *time.Time `json:"since,omitempty"`
}

// SetToolQueue is the body of PUT /api/tools/queues/{queue}: at least one of its fields is set.
type SetToolQueue struct {
	Concurrent int          `json:"concurrent,omitempty"` // calls at once, 1 to 1,000,000
	Rate       *SetToolRate `json:"rate,omitempty"`       // how often calls start
}

// SetToolRate is the rate of a tool queue; n 0, with nothing else, removes it.
type SetToolRate struct {
	N          int     `json:"n"`                     // 1 to 1,000,000
	PerSeconds float64 `json:"per_seconds,omitempty"` // 0.001 to 2,678,400
	Burst      int     `json:"burst,omitempty"`       // 1 to 1,000,000; 0: 1
}

// ToolQueueOpened is the answer to POST /api/tools/queues/{queue}/open.
type ToolQueueOpened struct {
	Opened int       `json:"opened"` // closings ended: 0 or 1, or one for each key of a queue with per_key
	Queue  ToolQueue `json:"queue"`  // a shared one may still be shown as closed for a moment
}

// ToolQueueSet is the answer to SetToolQueue: the queue after the change. It drains while in_use
// is greater than concurrent.
type ToolQueueSet struct {
	Before     int       `json:"before"`                // concurrent before the change
	RateBefore *ToolRate `json:"rate_before,omitempty"` // rate before the change
	Queue      ToolQueue `json:"queue"`
}

// ToolHolder is the holder of a slot of a tool queue.
type ToolHolder struct {
	Session string     `json:"session,omitempty"`
	Agent   string     `json:"agent,omitempty"`
	Tool    string     `json:"tool,omitempty"`
	QueueID string     `json:"queue_id,omitempty"` // the task that makes the call, or that the call is
	Since   *time.Time `json:"since,omitempty"`
	Leased  bool       `json:"leased,omitempty"`  // the session keeps it from call to call
	Idle    bool       `json:"idle,omitempty"`    // for a lease: no call is in flight
	Expires *time.Time `json:"expires,omitempty"` // for a lease: when it ends without further calls
	Behind  int        `json:"behind,omitempty"`  // calls of the session that wait for its own slot
	// Director is the instance that received the call, for a shared queue.
	Director string `json:"director,omitempty"`
}

// ToolWaiter is a call that waits in line for a tool queue.
type ToolWaiter struct {
	Position int       `json:"position"`
	Session  string    `json:"session,omitempty"`
	Agent    string    `json:"agent,omitempty"`
	Tool     string    `json:"tool,omitempty"`
	QueueID  string    `json:"queue_id,omitempty"` // the task that makes the call, or that the call is
	Since    time.Time `json:"since"`
	Director string    `json:"director,omitempty"` // as in ToolHolder
	// StartsAt is the earliest time at which it may start, if the rate or a closed queue blocks
	// it. Absent: it waits for a slot.
	StartsAt *time.Time `json:"starts_at,omitempty"`
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
	// StartsAt is the earliest time at which it may start, as in ToolWaiter.
	StartsAt *time.Time `json:"starts_at,omitempty"`
}

// ToolResult is the answer to POST /api/tools/{tool}/call: an MCP
// CallToolResult. A tool that failed answers with isError, not with an error.
type ToolResult struct {
	Content           json.RawMessage `json:"content"` // an array of content blocks
	StructuredContent json.RawMessage `json:"structuredContent,omitempty"`
	IsError           bool            `json:"isError,omitempty"`
	Meta              json.RawMessage `json:"_meta,omitempty"`
	// Metadata is {"agent": …} for a command tool; for a call that became a task it
	// is the metadata of the seed async-task-queue. It has "truncated": true if the
	// answer does not contain everything that the tool printed.
	Metadata json.RawMessage `json:"metadata,omitempty"`
}

// Truncated reports whether the tool printed more than the answer contains.
func (r *ToolResult) Truncated() bool {
	var meta struct {
		Truncated bool `json:"truncated"`
	}
	return r != nil && json.Unmarshal(r.Metadata, &meta) == nil && meta.Truncated
}

// NewToolTask is the body of POST /api/tools/{tool}/tasks.
type NewToolTask struct {
	Arguments json.RawMessage `json:"arguments,omitempty"`  // an object
	Metadata  json.RawMessage `json:"metadata,omitempty"`   // an object; passed to a command tool
	TimeoutMS int64           `json:"timeout_ms,omitempty"` // limit of the run, instead of the tool's; 1 to 604800000; 0: the tool's limit
	Priority  int             `json:"priority,omitempty"`   // -10 to 10
}

// ToolTask is a tool call as a task. Its first eight keys are those of the seed
// async-task-queue.
type ToolTask struct {
	ID        string      `json:"id"`
	ToolName  string      `json:"toolName"`
	Status    string      `json:"status"` // pending, running, completed, failed or cancelled
	CreatedAt time.Time   `json:"createdAt"`
	UpdatedAt time.Time   `json:"updatedAt"`
	Error     *string     `json:"error"`  // why it failed
	Result    *ToolResult `json:"result"` // if it completed; not in lists

	State          string `json:"state"`             // the task's own state, as in GET /api/queue/{id}
	Reason         string `json:"reason,omitempty"`  // why it ended
	Message        string `json:"message,omitempty"` // what it waits for, or why it ended
	Position       int    `json:"position,omitempty"`
	PollIntervalMS int64  `json:"pollIntervalMs,omitempty"` // when to poll again, until it has ended
	TimeoutMS      int64  `json:"timeout_ms,omitempty"`
	ExitCode       *int   `json:"exit_code,omitempty"`
	Owner          string `json:"owner,omitempty"`
	Tail           string `json:"tail,omitempty"`      // end of the output of an ended task; GET /api/queue/{id}/output has it live
	TailSeq        int64  `json:"tail_seq,omitempty"`  // position of tail in its whole output
	Truncated      bool   `json:"truncated,omitempty"` // result does not contain the whole output; for tail, see tail_seq
}

// ToolTaskCounts says how many tool calls are tasks that have not ended.
type ToolTaskCounts struct {
	Waiting int `json:"waiting"`
	Running int `json:"running"` // those with a slot; some may wait for their tool queue
}

// ToolTasks is the answer to GET /api/tools/tasks.
type ToolTasks struct {
	Tasks []ToolTask `json:"tasks"`          // first those that have not ended, in order, then ended ones, newest end first
	Next  string     `json:"next,omitempty"` // cursor of the next page
}

// TaskStatus is the answer to GET /getTaskStatus (seed async-task-queue).
type TaskStatus struct {
	Task ToolTask `json:"task"`
}

// Doctor is the answer to GET /api/doctor.
type Doctor struct {
	Checks []Check `json:"checks"`
}

// Check is one check of doctor.
type Check struct {
	Area  string `json:"area"`  // such as store, limits, sandbox, agents
	State string `json:"state"` // ok, warn or fail
	Text  string `json:"text"`
	Cure  string `json:"cure,omitempty"` // what to do, unless ok
}

// TerminalTicket is the 201 answer to POST /api/agents/{name}/terminal. The
// ticket opens one terminal, once, until it expires.
type TerminalTicket struct {
	Ticket    string    `json:"ticket"`
	Agent     string    `json:"agent"`
	URL       string    `json:"url"` // path of the WebSocket
	ExpiresAt time.Time `json:"expires_at"`
}

// TerminalMessage is a text message on the WebSocket of a terminal, on the
// director and on the agent. Binary messages are the bytes of the terminal,
// in both directions. The first message to a director is auth, within 10 s.
type TerminalMessage struct {
	Type   string `json:"type"`             // to the terminal: auth, resize; from the terminal: ready, exit, error
	Token  string `json:"token,omitempty"`  // auth: the ticket
	Cols   int    `json:"cols,omitempty"`   // auth, resize: 1 to 1000
	Rows   int    `json:"rows,omitempty"`   // auth, resize: 1 to 1000
	Code   int    `json:"code,omitempty"`   // exit: exit code of the program
	Reason string `json:"reason,omitempty"` // exit, error: for people
}

// AgentTerminal is a terminal that is open at an agent.
type AgentTerminal struct {
	By    string    `json:"by"` // who opened it
	Since time.Time `json:"since"`
}
