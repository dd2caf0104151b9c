package gateway

import (
	"context"
	"time"

	"github.com/signalbox-ai/signalbox"
)

// Tasks makes calls into durable tasks. *local.Executor does; the ways in
// (HTTP, MCP) know it by this interface.
type Tasks interface {
	// Submit stores a call as a task and returns when it is durable. The call is
	// checked first, as Gateway.Call checks it: nothing that does not fit the
	// tool's schema is stored. Any tool can be called as a task; internal ones
	// cannot (unsupported).
	//
	// Errors: not_found, validation_error, queue_full, idempotency_conflict,
	// store_failed, unsupported, unavailable.
	Submit(ctx context.Context, c TaskCall) (ToolTask, error)

	// CallOrPromote is Gateway.Call for a caller that can take a task instead of an
	// answer: a call that has stood in its tool queue's line for longer than
	// grace, or that calls an Async tool, becomes a task. Then task is not nil,
	// the task is durable, and the call goes on without the caller, in its place
	// in line. Where the task cannot be stored the call goes on as it was.
	CallOrPromote(ctx context.Context, c TaskCall, grace time.Duration) (r Result, task *ToolTask, err error)

	// Task returns a task of a tool, or not_found: also for a task that is none
	// of a tool. Who may see it is for the caller to decide (Task.Owner,
	// Principal.SeesTask).
	Task(ctx context.Context, id string) (ToolTask, error)
	// Wait is Task when the task has ended, the wait is over or ctx ends.
	Wait(ctx context.Context, id string, wait time.Duration) (ToolTask, error)
	// Cancel asks to stop a task; one that has ended is already_ended. It does
	// not wait for the end.
	Cancel(ctx context.Context, id, by string) (ToolTask, error)
	// List returns tasks of tools, those that have not ended first, in order,
	// then the others, newest end first. They come without their Result, which
	// may be large: Task has it.
	List(ctx context.Context, q TaskQuery) (TaskPage, error)
}

// TaskCall is a call that becomes, or may become, a task.
type TaskCall struct {
	Call
	Source         signalbox.Source // "" is api
	IdempotencyKey string
	Priority       int
	RetryOf        string // id of the task that this one repeats
}

// ToolTask is a task of a tool as those see it who asked for it.
type ToolTask struct {
	Task signalbox.Task
	// Result is what the tool answered: of a task that completed, and of one
	// whose tool failed (IsError). nil while it has not ended, and where nothing
	// was answered: Task.Message says why.
	Result *Result
	// Error is what the tool's server said instead of an answer: a JSON-RPC
	// error. nil where it said none.
	Error *ProtocolError
	// Wait says what it waits for, for people; "" once it runs.
	Wait string
	// Position is its place in line, from 1, while it waits: in the queue
	// commands, or in its tool queue. 0: unknown or not waiting.
	Position int
	// Poll is when to ask again: made from the ETA, 500 ms to 30 s.
	Poll time.Duration
	// TTL is how long after its creation it can be asked for at the least; 0: as
	// long as the director keeps it, which is not known yet.
	TTL time.Duration
	// Replayed says of a Submit that its idempotency key was known: this is the
	// task of that time.
	Replayed bool
}

// UpdatedAt is when something last happened to it.
func (t *ToolTask) UpdatedAt() time.Time {
	at := t.Task.CreatedAt
	for _, later := range []time.Time{t.Task.DispatchedAt, t.Task.StartedAt, t.Task.EndedAt} {
		if later.After(at) {
			at = later
		}
	}
	return at
}

// SeedStatus is the word that the seed async-task-queue has for a task's state
// (design §2); cancelled is what its system grew into.
func SeedStatus(s signalbox.State) string {
	switch s {
	case signalbox.Pending, signalbox.Dispatching:
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

// TaskQuery chooses tasks of tools. Empty fields choose all.
type TaskQuery struct {
	Tool   string
	Status string // a word of SeedStatus
	// Sees says whether the one who asks may see a task.
	Sees   func(*signalbox.Task) bool
	Before string // cursor of an earlier page
	Limit  int    // 1 to 1000
}

// TaskPage is a page of tasks; it may be shorter than the limit and still have
// a Next.
type TaskPage struct {
	Tasks []ToolTask
	Next  string // "" at the end
}
