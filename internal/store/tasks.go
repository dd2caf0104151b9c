package store

import (
	"context"
	"time"

	"github.com/signalbox-ai/signalbox"
)

// TaskWriter changes tasks and their requests and results.
type TaskWriter interface {
	// Submit stores a new pending task, unless its limit is reached (CodeQueueFull) or its
	// idempotency key was used before: with the same hash it returns the existing task with
	// Replayed set, with another hash CodeIdempotency. With FollowSession, a task whose
	// SessionID has a Session row goes to the queue of that session's agent. With a Room it
	// may be refused with CodeAgentBusy; with a Chat the store chooses its session, and
	// refuses one that is not active (CodeConflict). The checks come in this order: key,
	// id, session, room, limit.
	Submit(ctx context.Context, s Submission) (Submitted, error)

	// Restore stores a task from another store: a pending one at the end of its queue
	// (EnqueuedAt is its own or the newest so far, whichever is later), or an ended one
	// with its result. It checks no limit, room or session. CodeConflict if its id or
	// idempotency key exists, and for a task in flight. Its entry is RestoreEntry.
	Restore(ctx context.Context, r Restored) (signalbox.Task, error)

	// Claim gives the first ready task of the request's queues to a free slot of the agent: lowest order key,
	// then lowest place. Found is false if the agent has no free slot, the fleet limit is reached, or no task
	// is ready in a queue that is not paused. A pause of the agent's own queue drains it: it claims from no
	// queue. Isolated slots are counted and numbered separately, and drained only by a pause of their own
	// queue or of all. While the agent's account is closed, only isolated tasks are claimed; while it is
	// being tried, one claim at a time is let through (signalbox.Account.Probe). A task that runs anyway
	// (signalbox.Task.Anyway) is let through if it is the first. A task gets all that it needs
	// (ClaimRequest.Requires) until its slot is given back; if that is not free, the task is passed over. So
	// are later tasks of its queue that need any of the same, and after MaxPassed such tasks all others.
	Claim(ctx context.Context, c ClaimRequest) (Claimed, error)

	// Apply writes a change if the row still has revision change.Task.Rev, else ErrStale.
	// In the same step it updates: the slot row, the session row (pending tasks of that
	// session in a queue other than an agent's own move to the agent's queue), the result,
	// the environment of an ended task (erased), the readiness of the task and of the next
	// one of its session, the usage (change.Used), the account (change.Account) and the
	// journal. It returns the row as
	// stored.
	Apply(ctx context.Context, change signalbox.Change, now time.Time) (signalbox.Task, error)

	// Wake makes due tasks ready, at most limit, and returns when the next task is due
	// (zero: none).
	Wake(ctx context.Context, now time.Time, limit int) (woken []string, next time.Time, err error)

	// KeepStale stores the final report of a void execution of a task, by its fence: the newest
	// signalbox.MaxStale are kept. In the same step it adds to the usage what the execution used and was not
	// counted before. The task is unchanged. CodeNotFound if there is no task.
	KeepStale(ctx context.Context, id string, s signalbox.Stale) error

	// Prune deletes ended tasks, with their requests and results, as p says; with p.Ended
	// it also deletes journal entries that old, and sessions unused since that no task
	// names.
	Prune(ctx context.Context, p Pruning) (Pruned, error)
}

// TaskReader reads tasks and their requests and results.
type TaskReader interface {
	// Task returns the row of id, or CodeNotFound.
	Task(ctx context.Context, id string) (signalbox.Task, error)

	// Tasks returns the rows of those tasks that exist, as of one moment, in the order of
	// ids.
	Tasks(ctx context.Context, ids []string) ([]signalbox.Task, error)

	// ByKey returns the row of the task with that idempotency key, or CodeNotFound.
	ByKey(ctx context.Context, key string) (signalbox.Task, error)

	// Request returns the request of a task, with SealedEnv until the task has ended.
	Request(ctx context.Context, id string) (signalbox.Request, error)

	// Result returns the result of a task; the zero Result if it has none yet.
	Result(ctx context.Context, id string) (signalbox.Result, error)

	// Whole returns everything stored of a task in one read, or CodeNotFound.
	Whole(ctx context.Context, id string) (Whole, error)

	// Find returns the ids that start or end with part, newest first, at most limit. All
	// starts are found; ends are searched among the newest 10,000 tasks.
	Find(ctx context.Context, part string, limit int) ([]string, error)

	// Position returns the task's position in its queue, from 1, by order key and place,
	// ready or not; 0 if the task is not pending. Beyond MaxExactPosition it is estimated
	// and marked Approximate.
	Position(ctx context.Context, id string) (Position, error)

	// Counts returns how many tasks wait and run. Its cost grows with the number of
	// non-empty queues: prefer Lengths for single queues.
	Counts(ctx context.Context) (Counts, error)

	// Lengths returns how many tasks wait in each of these queues, in their order.
	Lengths(ctx context.Context, queues ...string) ([]int, error)

	// Waiting lists pending tasks of a queue, or of all queues if queue is "", in claim
	// order, after a cursor.
	Waiting(ctx context.Context, queue string, after Cursor, limit int) ([]signalbox.Task, error)

	// InFlight lists the tasks that are dispatching, working or cancelling, by fence.
	InFlight(ctx context.Context) ([]signalbox.Task, error)

	// Parked lists tasks that are parked at a gate of that kind and name, longest parked first; kind "": at
	// any gate.
	Parked(ctx context.Context, kind signalbox.GateKind, name string) ([]signalbox.Task, error)

	// Landings lists the ended tasks whose landing is open (signalbox.Landing.Open), in the order in which
	// the landings were requested.
	Landings(ctx context.Context) ([]signalbox.Task, error)

	// Overdue lists pending tasks whose WaitUntil is at or before now.
	Overdue(ctx context.Context, now time.Time, limit int) ([]signalbox.Task, error)

	// History lists ended tasks, newest end first.
	History(ctx context.Context, q HistoryQuery) (HistoryPage, error)

	// Kept returns the bytes of ended tasks by owner, as counted by Task.Kept; no zero
	// entries.
	Kept(ctx context.Context) (map[string]int64, error)

	// Children lists the tasks that the execution of a task has submitted, by Seq, at most
	// limit.
	Children(ctx context.Context, id string, limit int) ([]signalbox.Task, error)

	// Stales lists the final reports of void executions of a task, by fence.
	Stales(ctx context.Context, id string) ([]signalbox.Stale, error)

	// Snapshot returns what waits and runs as of one moment, with the first heads tasks of
	// each queue. It is cheap and blocks no writer, however many tasks wait.
	Snapshot(ctx context.Context, heads int) (Snapshot, error)
}

// Whole is everything stored of a task.
type Whole struct {
	Task     signalbox.Task
	Request  signalbox.Request
	Result   signalbox.Result  // like Reader.Result
	Stales   []signalbox.Stale // like Reader.Stales
	Position Position          // like Reader.Position
}
