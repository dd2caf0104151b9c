package api

import (
	"encoding/json"
	"time"
)

// Export is the answer to GET /api/export: a page of tasks. Waiting tasks come
// first in their order, then running ones, then ended ones, newest end first. A
// task that changes during the export may come twice: the later one counts.
type Export struct {
	Tasks []ExportedTask `json:"tasks"`
	// Usage is on the last pages, which have no tasks.
	Usage []ExportedUsage `json:"usage,omitempty"`
	Next  string          `json:"next,omitempty"` // cursor: ask with ?after=; absent at the end
}

// ExportedTask is a whole task without the values of its environment and of secret
// arguments, which are never exported.
type ExportedTask struct {
	QueueID     string     `json:"queue_id"`
	State       string     `json:"state"`
	Reason      string     `json:"reason,omitempty"`
	Message     string     `json:"message,omitempty"`
	Queue       string     `json:"queue"`
	Limit       string     `json:"limit"` // the limit that it counts against while it waits
	Mode        string     `json:"mode,omitempty"`
	Priority    int        `json:"priority,omitempty"`
	BiasMS      int64      `json:"bias_ms,omitempty"` // priority bias
	EnqueuedAt  time.Time  `json:"enqueued_at"`
	CreatedAt   time.Time  `json:"created_at"`
	NotBefore   *time.Time `json:"not_before,omitempty"`
	WaitUntil   *time.Time `json:"wait_until,omitempty"`
	SessionID   string     `json:"session_id,omitempty"`
	Session     string     `json:"session,omitempty"` // require or prefer
	OnLost      string     `json:"on_lost,omitempty"`
	MaxAttempts int        `json:"max_attempts"`
	HadEnv      bool       `json:"had_env,omitempty"` // it has values that are not exported; it cannot run without them
	// Env is never exported. If you have the values, add them before the import.
	Env        map[string]string `json:"env,omitempty"`
	RetryOf    string            `json:"retry_of,omitempty"`
	Source     string            `json:"source"`
	SourceJob  string            `json:"source_job,omitempty"`
	Preview    string            `json:"prompt_preview"`
	Key        string            `json:"idempotency_key,omitempty"`
	KeyHash    string            `json:"idempotency_hash,omitempty"`
	Tool       string            `json:"tool,omitempty"`
	Owner      string            `json:"owner,omitempty"`
	OwnerEmail string            `json:"owner_email,omitempty"`
	ParentID   string            `json:"parent_id,omitempty"`
	Depth      int               `json:"depth,omitempty"`

	// The last execution.
	DispatchedAt *time.Time `json:"dispatched_at,omitempty"`
	StartedAt    *time.Time `json:"started_at,omitempty"`
	EndedAt      *time.Time `json:"ended_at,omitempty"`
	Agent        string     `json:"agent,omitempty"`
	AgentURL     string     `json:"agent_url,omitempty"`
	TaskID       string     `json:"task_id,omitempty"`
	Attempts     int        `json:"attempts,omitempty"`
	Claims       int        `json:"claims,omitempty"`
	LastError    string     `json:"last_error,omitempty"`
	CancelledBy  string     `json:"cancelled_by,omitempty"`
	InputTokens  int64      `json:"input_tokens,omitempty"`  // total of its runs, this and below
	OutputTokens int64      `json:"output_tokens,omitempty"` //
	NanoUSD      int64      `json:"nano_usd,omitempty"`      // billionths of a US dollar
	Budget       *Budget    `json:"budget,omitempty"`        // limit on the total of its runs

	Needs     map[string]int `json:"needs,omitempty"`     // units of resources that its run holds
	Workplace string         `json:"workplace,omitempty"` // where its run works: folder (the agent's own) or other; "": the agent's default

	// Parking says how it was last parked and how it continues; absent: it never was. A parked
	// task is imported as pending and continues in its conversation.
	Parking *ExportedParking `json:"parking,omitempty"`
	// Landing is the landing of its work on a branch; absent: not wanted. An active landing is
	// imported with the state stands, until someone asks for it again.
	Landing *ExportedLanding `json:"landing,omitempty"`

	Request json.RawMessage `json:"request"`          // the request: prompt, model, arguments, …
	Result  json.RawMessage `json:"result,omitempty"` // output, tail, exit_code, …
}

// ExportedParking is how a task was parked.
type ExportedParking struct {
	Kind  string     `json:"kind"`            // account or time
	Name  string     `json:"name,omitempty"`  // of the account
	Text  string     `json:"text,omitempty"`  // why it was parked
	Until *time.Time `json:"until,omitempty"` // as known at that time
	At    time.Time  `json:"at"`
	Count int        `json:"count"`           // how often it was parked
	Next  string     `json:"next,omitempty"`  // prompt of the next turn of its conversation; absent: the agent's own words for "go on"
	Began bool       `json:"began,omitempty"` // its runs have done something: it can only continue in its conversation
}

// ExportedLanding is a landing without its counters.
type ExportedLanding struct {
	State       string    `json:"state"`          // as in Landing
	Text        string    `json:"text,omitempty"` // why it did not land
	Onto        string    `json:"onto"`
	Method      string    `json:"method,omitempty"`
	FastForward bool      `json:"fast_forward,omitempty"`
	LandTask    string    `json:"land_task,omitempty"`
	Turn        string    `json:"turn,omitempty"`
	Commit      string    `json:"commit,omitempty"`
	Was         string    `json:"was,omitempty"`
	URL         string    `json:"url,omitempty"`
	AskedBy     string    `json:"asked_by,omitempty"`
	AskedAt     time.Time `json:"asked_at"`
	Since       time.Time `json:"since"`
}

// ExportedUsage is the usage of a day, with the key by which it is summed up.
type ExportedUsage struct {
	Day          string `json:"day"`
	Agent        string `json:"agent"`
	Schedule     string `json:"schedule,omitempty"`
	Owner        string `json:"owner,omitempty"`
	OwnerEmail   string `json:"owner_email,omitempty"`
	Model        string `json:"model,omitempty"`
	Runs         int64  `json:"runs"`
	Failed       int64  `json:"failed,omitempty"`
	RunMS        int64  `json:"run_ms,omitempty"`
	InputTokens  int64  `json:"input_tokens,omitempty"`
	OutputTokens int64  `json:"output_tokens,omitempty"`
	NanoUSD      int64  `json:"nano_usd,omitempty"` // billionths of a US dollar
}

// ImportRequest is the body of POST /api/import, at most 32 MiB.
type ImportRequest struct {
	Tasks []ExportedTask `json:"tasks"` // at most 1,000
	// Usage is stored row by row; existing rows are kept. At most 1,000.
	Usage []ExportedUsage `json:"usage,omitempty"`
	// Running says what happens to tasks that were running at the export: interrupt
	// (default) ends them as failed with the reason interrupted; requeue puts them
	// back in line.
	Running string `json:"running,omitempty"`
}

// Imported is the answer to an import. A task whose id or idempotency key already
// exists counts as known and is not changed, so that an import can be repeated.
type Imported struct {
	Imported int               `json:"imported"`
	Known    int               `json:"known"`
	Refused  []ImportedRefusal `json:"refused"`
	Usage    int               `json:"usage,omitempty"` // stored rows of usage
}

// ImportedRefusal is a task that was not imported, and why.
type ImportedRefusal struct {
	QueueID string `json:"queue_id"`
	Message string `json:"message"`
}
