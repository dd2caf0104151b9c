package gateway

import (
	"context"
	"time"

	"github.com/signalbox-ai/signalbox"
)

// Tasks makes calls into durable tasks. It is implemented by *local.Executor and used by the
// HTTP and MCP frontends.
type Tasks interface {
	// Submit stores a call as a task and returns when it is durable. The call is checked first,
	// as by Gateway.Check. Internal tools cannot be tasks (unsupported).
	//
	// Errors: not_found, validation_error, queue_full, idempotency_conflict, store_failed,
	// unsupported, unavailable.
	Submit(ctx context.Context, c TaskCall) (ToolTask, error)

	// CallOrPromote is Gateway.Call for a caller that accepts a task instead of an answer. A
	// call becomes a task if it has waited in its tool queue for longer than grace, or if it
	// calls an Async tool. Then task is not nil, the task is durable, and the call continues
	// without the caller, at its position in the queue. If the task cannot be stored, the call
	// continues as a plain call.
	CallOrPromote(ctx context.Context, c TaskCall, grace time.Duration) (r Result, task *ToolTask, err error)

	// Task returns a task of a tool. A task of another kind is not_found. The caller must
	// check access (Task.Owner, Principal.SeesTask).
	Task(ctx context.Context, id string) (ToolTask, error)
	// Wait is Task, once the task has ended, the wait is over or ctx ends.
	Wait(ctx context.Context, id string, wait time.Duration) (ToolTask, error)
	// Cancel requests a cancel and does not wait for it. If the task has ended, the error is
	// already_ended.
	Cancel(ctx context.Context, id, by string) (ToolTask, error)
	// List returns tasks of tools: open tasks in queue order, then ended tasks, newest first.
	// It leaves out results, which may be large; Task returns them.
	List(ctx context.Context, q TaskQuery) (TaskPage, error)
}

// TaskCall is a call that becomes, or may become, a task.
type TaskCall struct {
	Call
	Source         signalbox.Source // "" is api
	IdempotencyKey string
	Priority       int
	RetryOf        string // ID of the task that this task repeats
}

// ToolTask is a task of a tool as its creator sees it.
type ToolTask struct {
	Task signalbox.Task
	// Result is the answer of a completed task or of a task whose tool failed (IsError). It
	// is nil while the task is open and if there is no answer; Task.Message then has the
	// reason.
	Result *Result
	// Error is the JSON-RPC error of the tool's server, or nil.
	Error *ProtocolError
	// Wait describes what the task waits for; "" once it runs.
	Wait string
	// Position is the task's position while it waits, from 1, in the queue commands or in
	// its tool queue. 0: unknown or not waiting.
	Position int
	// Poll is when to poll again, derived from the ETA: 500 ms to 30 s.
	Poll time.Duration
	// TTL is how long the task is kept at least, counted from its creation. 0: the director's
	// retention, which is not known yet.
	TTL time.Duration
	// Replayed is set after Submit if the idempotency key was known: this is the existing
	// task.
	Replayed bool
}

// UpdatedAt is the time of its last change.
func (t *ToolTask) UpdatedAt() time.Time {
	at := t.Task.CreatedAt
	for _, later := range []time.Time{t.Task.DispatchedAt, t.Task.StartedAt, t.Task.EndedAt} {
		if later.After(at) {
			at = later
		}
	}
	return at
}

// SeedStatus maps a task's state (design §2) to the status of the seed async-task-queue,
// which has no cancelled: that is added.
func SeedStatus(s signalbox.State) string {
	switch s {
	case signalbox.Pending, signalbox.Dispatching, signalbox.Parked:
		return "pending"
	case signalbox.Working, signalbox.Cancelling:
		return "running"
	case signalbox.Completed:
		return "completed"
	case signalbox.Cancelled:
		return "cancelled"
	}
	return "failed"
}

// TaskQuery selects tasks of tools. Empty fields select all.
type TaskQuery struct {
	Tool   string
	Status string // a value of SeedStatus
	// Sees reports whether the caller may see a task.
	Sees   func(*signalbox.Task) bool
	Before string // cursor of an earlier page
	Limit  int    // 1 to 1000
}

// TaskPage is a page of tasks. It may be shorter than the limit and still have
// a Next.
type TaskPage struct {
	Tasks []ToolTask
	Next  string // "" at the end
}
