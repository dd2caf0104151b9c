package api

import "time"

// ChatRequest is the body of POST /api/agents/{name}/chat: a turn of the
// agent's conversation. It waits in line and runs; the answer comes at its end.
type ChatRequest struct {
	Message        string            `json:"message,omitempty"` // what the agent is to do; use message or prompt, not both
	Prompt         string            `json:"prompt,omitempty"`
	Model          string            `json:"model,omitempty"`
	Tier           string            `json:"tier,omitempty"`
	TimeoutSeconds int               `json:"timeout_seconds,omitempty"` // limit of the run, 0 to 604800; 0: the agent's default
	SessionID      string            `json:"session_id,omitempty"`      // conversation to continue; default: the agent's current one
	NewSession     bool              `json:"new_session,omitempty"`     // begin a new conversation, which becomes the current one
	Project        *Project          `json:"project,omitempty"`
	Env            map[string]string `json:"env,omitempty"`
	Thinking       *bool             `json:"thinking,omitempty"`
	Priority       int               `json:"priority,omitempty"` // -10 to 10
	OnLost         string            `json:"on_lost,omitempty"`  // fail or requeue; default: queue.on_lost of the director
	// Overflow says what to do when the agent is busy: wait (default) for at most
	// wait_timeout; reject with 409; persist in the backlog without a timeout.
	// wait_if_busy false means reject.
	Overflow    string `json:"overflow,omitempty"`
	WaitIfBusy  *bool  `json:"wait_if_busy,omitempty"`
	WaitTimeout int    `json:"wait_timeout,omitempty"` // seconds, 1 to 2592000; default 120. With persist: until the answer is 202
	// OnDisconnect says what happens to the task when its caller disconnects:
	// continue (default) or cancel.
	OnDisconnect string `json:"on_disconnect,omitempty"`
}

// BypassRequest is the body of POST /api/agents/{name}/task: an isolated
// execution outside the queue, without a conversation. It starts at once or is
// refused.
type BypassRequest struct {
	Message        string            `json:"message,omitempty"` // use message or prompt, not both
	Prompt         string            `json:"prompt,omitempty"`
	Model          string            `json:"model,omitempty"`
	Tier           string            `json:"tier,omitempty"`
	AllowedTools   []string          `json:"allowed_tools,omitempty"`   // for runners that support them; others refuse the task
	SystemPrompt   string            `json:"system_prompt,omitempty"`   // as with allowed_tools
	TimeoutSeconds int               `json:"timeout_seconds,omitempty"` // default 300
	Env            map[string]string `json:"env,omitempty"`
	Thinking       *bool             `json:"thinking,omitempty"`
	OnDisconnect   string            `json:"on_disconnect,omitempty"` // continue (default) or cancel
}

// ChatResponse is the 200 answer to a chat or a bypass task that completed,
// and the data of the event "result" of a stream.
type ChatResponse struct {
	Response     string       `json:"response"`
	Agent        string       `json:"agent"`
	Execution    ExecutionRef `json:"execution"`
	Metadata     ChatMetadata `json:"metadata"`
	SessionID    string       `json:"session_id,omitempty"`
	ExecutionLog string       `json:"execution_log,omitempty"` // for a bypass task: the end of its log, at most 128 KiB
	Timestamp    time.Time    `json:"timestamp"`               // of the end
}

// ExecutionRef identifies an execution and gives its status at submit.
type ExecutionRef struct {
	ID          string `json:"id"`           // the queue_id
	QueueStatus string `json:"queue_status"` // "running", or "queued:N" with its place in line
	WasQueued   bool   `json:"was_queued"`
}

// ChatMetadata is the usage of an execution.
type ChatMetadata struct {
	CostUSD      float64 `json:"cost_usd"`
	DurationMS   int64   `json:"duration_ms"`
	InputTokens  int64   `json:"input_tokens"`
	OutputTokens int64   `json:"output_tokens"`
	ToolCount    int64   `json:"tool_count"` // number of tool uses
}

// ChatAccepted is the 202 answer, sent with Prefer: respond-async, or if a chat
// in the backlog still waits after wait_timeout. It is also the data of the
// first event of a stream, "accepted".
type ChatAccepted struct {
	Agent     string       `json:"agent"`
	Execution ExecutionRef `json:"execution"`
	State     string       `json:"state"`
	Position  int          `json:"position,omitempty"`
	SessionID string       `json:"session_id,omitempty"`
	ETA       *ETA         `json:"eta,omitempty"`
	// WaitingFor is the gate that it waits for, as in Task.
	WaitingFor *WaitingFor `json:"waiting_for,omitempty"`
	URL        string      `json:"url"` // GET it with ?wait= for the end
	Message    string      `json:"message,omitempty"`
}

// ChatError is the answer to a chat that did not complete, and the data of
// the event "error" of a stream. code is agent_busy (409, or 429 for a bypass
// task), queue_full (429, or 503 for the backlog) or agent_down (503). For a stored task it is the
// reason of its end: wait_timeout and run_timeout (504), budget (402), cancelled
// and released (409), all others 502.
type ChatError struct {
	Error      string        `json:"error"` // "Agent is busy", "Agent queue is full" (the seed's texts), "Bypass is full", else the same as code
	Code       string        `json:"code"`
	Agent      string        `json:"agent"`
	Message    string        `json:"message"`
	Hint       string        `json:"hint,omitempty"`
	Retryable  bool          `json:"retryable"`
	RetryAfter int           `json:"retry_after,omitempty"`  // seconds, as in the Retry-After header
	RequestID  string        `json:"request_id,omitempty"`   //
	QueueLen   *int          `json:"queue_length,omitempty"` // queue_full
	Current    *Execution    `json:"current_execution,omitempty"`
	Execution  *ExecutionRef `json:"execution,omitempty"` // if it was stored
	State      string        `json:"state,omitempty"`
}

// ChatPosition is the data of the event "position" of a chat's stream.
type ChatPosition struct {
	ID       string `json:"id"`
	Position int    `json:"position"` // 0: it no longer waits
	ETA      *ETA   `json:"eta,omitempty"`
	// WaitingFor is the gate that it waits for, as in Task.
	WaitingFor *WaitingFor `json:"waiting_for,omitempty"`
}

// Execution is a task in the terms of the seed execution-queue.
type Execution struct {
	ID              string     `json:"id"`
	AgentName       string     `json:"agent_name"`
	Source          string     `json:"source"` // user, schedule, agent
	SourceAgent     string     `json:"source_agent,omitempty"`
	SourceUserID    string     `json:"source_user_id,omitempty"`
	SourceUserEmail string     `json:"source_user_email,omitempty"`
	Message         string     `json:"message"` // the first line, cut to 80 characters
	QueuedAt        time.Time  `json:"queued_at"`
	StartedAt       *time.Time `json:"started_at,omitempty"`
	Status          string     `json:"status"` // queued, running, completed, failed, cancelled, timeout
}

// Lane is the answer to GET /api/agents/{name}/queue.
type Lane struct {
	AgentName        string      `json:"agent_name"`
	IsBusy           bool        `json:"is_busy"`           // no slot is free
	CurrentExecution *Execution  `json:"current_execution"` // the first of executions, or null
	QueueLength      int         `json:"queue_length"`
	QueuedExecutions []Execution `json:"queued_executions"` // at most 1,000
	Executions       []Execution `json:"executions"`        // all that hold a slot; a lost one that may still run counts as running
	Bypass           []Execution `json:"bypass"`            // isolated ones
	Slots            int         `json:"slots"`
	MaxQueueSize     int         `json:"max_queue_size"` // chats that may wait
	Paused           []Pause     `json:"paused,omitempty"`
}

// Sessions is the answer to GET /api/sessions, last used first.
type Sessions struct {
	Sessions []Session `json:"sessions"`
	Next     string    `json:"next,omitempty"` // cursor: ask with ?before=
}

// Session is a conversation that an agent holds.
type Session struct {
	SessionID string    `json:"session_id"`
	Agent     string    `json:"agent"`
	State     string    `json:"state"`   // active, archived, gone (its agent no longer has it)
	Current   bool      `json:"current"` // chats of the agent continue in it
	Source    string    `json:"source,omitempty"`
	Owner     string    `json:"owner,omitempty"`
	Title     string    `json:"title,omitempty"`
	Turns     int       `json:"turns"`
	CreatedAt time.Time `json:"created_at"`
	LastUsed  time.Time `json:"last_used_at"`
}

// Activities is the answer to GET /api/activities, newest first.
type Activities struct {
	Activities []Activity `json:"activities"`
	Next       string     `json:"next,omitempty"` // cursor: ask with ?before=
}

// Activity is a task in the terms of the seed's activity stream. It is derived
// from the task's row; there is no separate record.
type Activity struct {
	ID                 string          `json:"id"`    // the queue_id
	Type               string          `json:"type"`  // chat_start, task_start, schedule_start, agent_collaboration, tool_call
	State              string          `json:"state"` // queued, started, completed, failed
	AgentName          string          `json:"agent_name,omitempty"`
	ParentActivityID   string          `json:"parent_activity_id,omitempty"`
	TriggeredBy        string          `json:"triggered_by"` // user, schedule, agent
	UserID             string          `json:"user_id,omitempty"`
	SourceAgent        string          `json:"source_agent,omitempty"`
	RelatedExecutionID string          `json:"related_execution_id"`
	Details            ActivityDetails `json:"details"`
	CreatedAt          time.Time       `json:"created_at"`
	StartedAt          *time.Time      `json:"started_at,omitempty"`
	CompletedAt        *time.Time      `json:"completed_at,omitempty"`
	DurationMS         *int64          `json:"duration_ms,omitempty"` // from start to end, never negative
	Error              string          `json:"error,omitempty"`
	Children           []Activity      `json:"children,omitempty"` // for GET /api/activities/{id}: the tree below it
}

// ActivityDetails are the details of an activity.
type ActivityDetails struct {
	ExecutionID string `json:"execution_id"`
	QueueStatus string `json:"queue_status"` // running, or queued:N
	WasQueued   bool   `json:"was_queued"`
	Message     string `json:"message,omitempty"`
	Tool        string `json:"tool,omitempty"` // of a tool_call
	SessionID   string `json:"session_id,omitempty"`
	Job         string `json:"job,omitempty"`    // of a schedule
	Depth       int    `json:"depth,omitempty"`  // length of the chain of agent calls that leads to it
	Reason      string `json:"reason,omitempty"` // why it ended
}

// StaleResult is the report of an execution that had already lost its slot. It is
// kept separately and does not change the task.
type StaleResult struct {
	Fence   int64     `json:"fence"`
	Agent   string    `json:"agent"`
	TaskID  string    `json:"task_id,omitempty"`
	At      time.Time `json:"at"`
	State   string    `json:"state"`
	Message string    `json:"message,omitempty"`
	Result  Result    `json:"result"`
}
