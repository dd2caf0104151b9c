package store

import (
	"context"
	"time"

	"github.com/signalbox-ai/signalbox"
)

// TaskWriter changes tasks and what is kept of them.
type TaskWriter interface {
	// Submit stores a new pending task, unless its limit is reached
	// (CodeQueueFull) or its idempotency key was used before: with the same
	// hash the task of that time is returned with Replayed set, with another
	// one CodeIdempotency. If the task has a SessionID and a Session row
	// names its agent, and the submission says so, the task's queue becomes
	// the queue of that agent. With a Room it may be refused as
	// CodeAgentBusy; with a Talk the store chooses its session, and refuses
	// one that is not active (CodeConflict). The checks come in this order:
	// key, id, session, room, limit.
	Submit(ctx context.Context, s Submission) (Submitted, error)

	// Restore stores a task as another store had it: one that waits, at the end
	// of its queue (EnqueuedAt is the one it comes with, or the newest so far,
	// whichever is later), or one that has ended, with its result. It looks at
	// no limit, room or session. CodeConflict where its id or its idempotency
	// key is taken, and for a task in flight. Its entry is RestoreEntry.
	Restore(ctx context.Context, r Restored) (signalbox.Task, error)

	// Claim gives the best ready task of the request's queues to a free slot
	// of the agent: lowest order key, then lowest place. Found is false when
	// the agent has no free slot, the fleet's ceiling is reached, or nothing
	// ready waits in a queue that is not paused. A pause of the agent's own
	// queue keeps it from all queues: it is drained. Isolated slots are
	// counted and numbered apart from the others, and drained only by a pause
	// of their own queue or of all.
	Claim(ctx context.Context, c ClaimRequest) (Claimed, error)

	// Apply writes a change where the row still has revision
	// change.Task.Rev, else ErrStale. With it, in the same step: the slot
	// row, the session row (pending tasks of that session which wait in
	// another queue than an agent's own move to the agent's queue), the
	// result, the erased environment of a task that ended, the readiness of
	// the task and of the next one of its session, and the journal entry.
	// It returns the row as stored.
	Apply(ctx context.Context, change signalbox.Change, now time.Time) (signalbox.Task, error)

	// Wake makes due tasks ready, at most limit, and says when the next one
	// that waits for its time is due (zero: none).
	Wake(ctx context.Context, now time.Time, limit int) (woken []string, next time.Time, err error)

	// KeepStale keeps what a void execution of a task said, beside what is
	// kept already, by its fence: the newest signalbox.MaxStale. It changes
	// nothing of the task. CodeNotFound if there is no task.
	KeepStale(ctx context.Context, id string, s signalbox.Stale) error

	// Prune forgets ended tasks, with their requests and results, as p says;
	// and with a p.Ended what else is that old: journal entries, and sessions
	// that nobody has used since and no task names.
	Prune(ctx context.Context, p Pruning) (Pruned, error)
}

// TaskReader reads tasks and what is kept of them.
type TaskReader interface {
	// Task returns the row of id, or CodeNotFound.
	Task(ctx context.Context, id string) (signalbox.Task, error)

	// Tasks returns the rows of those of the tasks that are there, at one moment,
	// in the order of ids.
	Tasks(ctx context.Context, ids []string) ([]signalbox.Task, error)

	// ByKey returns the row of the task with that idempotency key, or CodeNotFound.
	ByKey(ctx context.Context, key string) (signalbox.Task, error)

	// Request returns what was asked for, with SealedEnv while the task has
	// not ended.
	Request(ctx context.Context, id string) (signalbox.Request, error)

	// Result returns what the task left behind; the zero Result if it has
	// none yet.
	Result(ctx context.Context, id string) (signalbox.Result, error)

	// Whole returns all of a task in one read, or CodeNotFound.
	Whole(ctx context.Context, id string) (Whole, error)

	// Find returns the ids that begin or end with part, newest first, at
	// most limit. Beginnings are exact; endings are sought among the newest
	// 10,000 tasks.
	Find(ctx context.Context, part string, limit int) ([]string, error)

	// Position counts the pending tasks that stand before the task in its
	// queue, by order key and place, ready or not, and adds one; 0 if the
	// task is not pending. It counts at most MaxExactPosition of them; what
	// lies beyond is estimated and marked Approximate.
	Position(ctx context.Context, id string) (Position, error)

	// Counts returns how many tasks wait and run. It costs as much as there are
	// queues in which something waits: ask Lengths for those that matter.
	Counts(ctx context.Context) (Counts, error)

	// Lengths returns how many tasks wait in each of these queues, in their
	// order.
	Lengths(ctx context.Context, queues ...string) ([]int, error)

	// Waiting lists pending tasks of a queue, or of all queues if queue is
	// "", in the order in which they will be taken, after a cursor.
	Waiting(ctx context.Context, queue string, after Cursor, limit int) ([]signalbox.Task, error)

	// InFlight lists the tasks that are dispatching, working or cancelling,
	// in the order of their claims.
	InFlight(ctx context.Context) ([]signalbox.Task, error)

	// Overdue lists pending tasks whose WaitUntil is at or before now.
	Overdue(ctx context.Context, now time.Time, limit int) ([]signalbox.Task, error)

	// History lists ended tasks, newest end first.
	History(ctx context.Context, q HistoryQuery) (HistoryPage, error)

	// Kept returns how many bytes ended tasks take, by owner, as Task.Kept counts
	// them; no zero entries.
	Kept(ctx context.Context) (map[string]int64, error)

	// Children lists the tasks that the execution of a task called, by Seq,
	// at most limit.
	Children(ctx context.Context, id string, limit int) ([]signalbox.Task, error)

	// Stales lists what void executions of a task said, by fence.
	Stales(ctx context.Context, id string) ([]signalbox.Stale, error)

	// Snapshot returns what waits and runs at one moment: no write stands
	// between its parts. Of each line it has the first heads tasks. It is
	// cheap, and holds up no writer, however many wait.
	Snapshot(ctx context.Context, heads int) (Snapshot, error)
}

// Whole is a task with all that is kept of it.
type Whole struct {
	Task     signalbox.Task
	Request  signalbox.Request
	Result   signalbox.Result  // as Reader.Result has it
	Stales   []signalbox.Stale // as Reader.Stales has them
	Position Position          // as Reader.Position has it
}
