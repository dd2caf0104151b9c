package verbs

import (
	"context"
	"errors"
	"time"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/internal/store"
)

// Results of a Backend that are not faults.
var (
	// ErrMoved: another batch was committed after the moment that the delta is based on.
	// Nothing was written.
	ErrMoved = errors.New("another batch came first")
	// ErrTaken: a stored task has the id or idempotency key of a new one. Nothing was
	// written. The batch is retried with all ids and keys looked up.
	ErrTaken = errors.New("an id or a key is taken")
	// ErrUnknown: the connection broke before the answer to Commit came. Committed resolves
	// it.
	ErrUnknown = errors.New("the answer to a commit was lost")
	// ErrValue: a value of one verb, or a row that it asks for, is at fault, not the batch.
	// Nothing was written. It is wrapped by a *signalbox.Error with the details. The verbs
	// are retried in batches of one, so that only the faulty one is refused.
	ErrValue = errors.New("a value of one verb was refused")
)

// Backend is a server that keeps the rows of a store. All errors but those above are *signalbox.Error, whose
// message says what the server said and what to do; nothing was written then. CodeUnavailable means that the
// server cannot be reached, or that a retry may help: the call is retried for Options.Patience. With any
// other code, usually CodeStoreFailed, the callers get the error at once.
//
// Besides rows by id, these indexes are needed, each updated in the same step as the rows:
//
//	line      pending tasks of a queue by OrderKey, Place; and of all queues
//	ready     those of them that are Ready
//	timed     pending, not Ready, with NotBefore: by NotBefore, Place
//	bounded   pending with WaitUntil: by WaitUntil, Place
//	created   pending: by CreatedAt, Seq
//	flying    in flight: by Fence
//	turn      pending and in flight of a session: by OrderKey, Place
//	ended     ended: by EndedAt, Seq
//	runs      completed of an agent: by EndedAt, Seq
//	parent    tasks of a ParentID: by Seq
//	named     whether any task names a session
//	key       by IdempotencyKey, while the task exists
//
// Strings may hold any bytes, including names of docs and queues. Times have milliseconds.
type Backend interface {
	Reading

	// Load and Commit are called sequentially, each with a context that has a deadline.
	//
	// Load reads what is wanted, all as of one moment. A Want with only Writer set asks for the moment: that
	// must be cheap.
	Load(ctx context.Context, w *Want) (*Loaded, error)
	// Commit writes all of d, durably, or nothing, and releases a lock. ErrMoved if the
	// moment is not d.From.Moment; ErrTaken; ErrUnknown, also if the context ends after
	// anything was sent. It must not retain d.
	Commit(ctx context.Context, d *Delta) error

	// Info says what the server is, as it was when it was opened.
	Info() store.Info
	// Close releases the server. No method is called after it.
	Close() error
}

// SharedBackend is a Backend that other processes may write to. Its methods except Time and
// Changed are called sequentially with Load and Commit. Only its Commit may return ErrMoved
// and ErrUnknown.
type SharedBackend interface {
	Backend

	// Lock excludes the batches of all others until Commit or Unlock, and loads. A process
	// that stops while it has the lock loses it within seconds; its Commit then returns
	// ErrMoved.
	//
	// A Commit of a delta with a Log may pass the lock on before the batch is stored, with
	// the log: the next Lock gets it as Loaded.Handed. Batches are stored in the order of
	// their locks all the same, and none whose parent is not stored (Delta.Parent).
	Lock(ctx context.Context, w *Want) (*Loaded, error)
	// Unlock releases the lock without a write. It is a no-op without a lock.
	Unlock(ctx context.Context)
	// Committed reports whether the batch with that number is stored, after an ErrUnknown.
	// It waits until the answer is final, or makes it so by advancing the moment.
	Committed(ctx context.Context, writer string, number int64) (bool, error)

	// Time is the server's time.
	Time(ctx context.Context) (time.Time, error)
	// Changed is signalled when another process may have committed: a channel of capacity
	// 1, never closed.
	Changed() <-chan struct{}
}

// Reading is the read side. Its methods are called concurrently, and see everything
// committed before the call.
type Reading interface {
	// Task returns a row, nil if there is none.
	Task(ctx context.Context, id string) (*signalbox.Task, error)
	// Tasks returns a row, or nil, for each id, all at one moment.
	Tasks(ctx context.Context, ids []string) ([]*signalbox.Task, error)
	// Whole returns all that is kept of a task; its Task is nil if there is none.
	Whole(ctx context.Context, id string) (Whole, error)
	// Find, Waiting, InFlight, Overdue, SessionTasks, Durations, Children,
	// Slots and Counts are those of store.Reader; limits are from 1.
	Find(ctx context.Context, part string, limit int) ([]string, error)
	Waiting(ctx context.Context, queue string, after store.Cursor, limit int) ([]signalbox.Task, error)
	InFlight(ctx context.Context) ([]signalbox.Task, error)
	Overdue(ctx context.Context, now time.Time, limit int) ([]signalbox.Task, error)
	SessionTasks(ctx context.Context, session string, limit int) ([]signalbox.Task, error)
	Durations(ctx context.Context, agent string, limit int) ([]time.Duration, error)
	Children(ctx context.Context, parent string, limit int) ([]signalbox.Task, error)
	Slots(ctx context.Context) ([]signalbox.Slot, error)
	Counts(ctx context.Context) (store.Counts, error)
	// Lengths is that of store.Reader, for one queue or more.
	Lengths(ctx context.Context, queues []string) ([]int, error)
	// Before counts the pending tasks ahead of a pending task in its queue, up to most, or
	// all of them if that is as cheap; exact says that n counts all. n is 0 for a task that
	// is not pending; task is nil if there is none.
	Before(ctx context.Context, id string, most int) (n int, exact bool, task *signalbox.Task, err error)
	// Ended lists ended tasks before a cursor, newest end first.
	Ended(ctx context.Context, before store.EndedCursor, limit int) ([]signalbox.Task, error)
	// Snapshot is store.Reader's, without Pauses, which are docs and are returned separately.
	Snapshot(ctx context.Context, heads int) (s store.Snapshot, pauses []Doc, err error)
	// Entries returns journal entries with a Seq above after, oldest first;
	// EntryRange as store.Reader's JournalRange.
	Entries(ctx context.Context, after int64, limit int) ([]Entry, error)
	EntryRange(ctx context.Context) (oldest, newest int64, err error)
	// Doc returns a doc, nil if there is none; Docs lists a kind.
	Doc(ctx context.Context, k DocKey) (*Doc, error)
	Docs(ctx context.Context, p Page) ([]Doc, error)
}

// Whole is everything stored of a task; nil for what is missing.
type Whole struct {
	Task    *signalbox.Task
	Request *signalbox.Request
	Result  *signalbox.Result
	Stales  []byte // the body of its doc of KindStale
}

// Entry is a journal entry and the process that wrote it.
type Entry struct {
	signalbox.Entry
	Writer string
}

// Counters never decrease. They are stored in one place, and each batch writes them.
type Counters struct {
	// Moment identifies the last batch. Each batch adds a random step, so that a server that lost batches
	// does not reach a known moment again. Moments can only be compared for equality.
	Moment     int64
	Generation int64 // from 1
	Seq        int64
	Place      int64
	Fence      int64
	Entry      int64
	EnqueuedMS int64 // newest EnqueuedAt so far
	WokenMS    int64 // up to which Wake has checked; may decrease
}
