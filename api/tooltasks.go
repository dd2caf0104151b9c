package api

import (
	"encoding/json"
	"time"
)

// NewToolTask is the body of POST /api/tools/{tool}/tasks.
type NewToolTask struct {
	Arguments json.RawMessage `json:"arguments,omitempty"`  // an object
	Metadata  json.RawMessage `json:"metadata,omitempty"`   // an object; a command tool is given it
	TimeoutMS int64           `json:"timeout_ms,omitempty"` // limit of the run, before the tool's; 1 to 604800000; 0: the tool's own
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
	Result    *ToolResult `json:"result"` // of one that completed; not in lists

	State          string `json:"state"`             // the task's own state, as in GET /api/queue/{id}
	Reason         string `json:"reason,omitempty"`  // why it ended
	Message        string `json:"message,omitempty"` // what it waits for, or why it ended
	Position       int    `json:"position,omitempty"`
	PollIntervalMS int64  `json:"pollIntervalMs,omitempty"` // when to ask again, while it has not ended
	TimeoutMS      int64  `json:"timeout_ms,omitempty"`
	ExitCode       *int   `json:"exit_code,omitempty"`
	Owner          string `json:"owner,omitempty"`
	Tail           string `json:"tail,omitempty"`      // end of what it printed, of one that ended; GET /api/queue/{id}/output has it live
	TailSeq        int64  `json:"tail_seq,omitempty"`  // position of tail in all that it printed
	Truncated      bool   `json:"truncated,omitempty"` // more was printed than result holds; of tail, tail_seq says so
}

// ToolTaskCounts says how many tool calls are tasks that have not ended.
type ToolTaskCounts struct {
	Waiting int `json:"waiting"`
	Running int `json:"running"` // that have a slot; some may wait for their tool queue
}

// ToolTasks is the answer to GET /api/tools/tasks.
type ToolTasks struct {
	Tasks []ToolTask `json:"tasks"`          // that have not ended in order, then newest end first
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

// Check is one thing that doctor looked at.
type Check struct {
	Area  string `json:"area"`  // such as store, limits, sandbox, agents
	State string `json:"state"` // ok, warn or fail
	Text  string `json:"text"`
	Cure  string `json:"cure,omitempty"` // what to do, unless ok
}
