package verbs

import (
	"context"
	"errors"
	"time"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/internal/store"
)

// The answers of a Backend that are no faults.
var (
	// ErrMoved: another batch came between the moment that the delta began at
	// and Commit. Nothing was written.
	ErrMoved = errors.New("another batch came first")
	// ErrTaken: a new task has an id, or an idempotency key, that a stored one
	// has. Nothing was written. The batch is done again with all ids and keys
	// looked up.
	ErrTaken = errors.New("an id or a key is taken")
	// ErrUnknown: the connection broke before the answer to Commit came.
	// Committed tells what became of it.
	ErrUnknown = errors.New("the answer to a commit was lost")
	// ErrValue: the fault lies with a value of one verb, or with a row that one
	// asks for, and not with the batch. Nothing was written. It is wrapped by the
	// *signalbox.Error that says more. The verbs of the batch are done again, each
	// in one of its own, so that only those are refused whose fault it is.
	ErrValue = errors.New("a value of one verb was refused")
)

// Backend is a server that keeps the rows of a store. All errors but those
// above are *signalbox.Error, whose message says what the server said and what
// to do; nothing was written then. With CodeUnavailable the server cannot be
// reached, or another try may cure it: it is made for as long as
// Options.Patience says. With any other code, most often CodeStoreFailed, the
// server refuses, and the callers are told at once.
//
// Beside the rows by id, these indexes are needed; each is kept in the same
// step as the rows:
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
//	named     whether any task at all names a session
//	key       by IdempotencyKey, while the task is there
//
// Strings hold any bytes, those that name docs and queues too. Times are kept to
// the millisecond.
type Backend interface {
	Reading

	// Load and Commit are the way of a batch: they are called one after the
	// other, each with a context that ends in time.
	//
	// Load reads what is wanted, all at one moment. A want of nothing but the
	// Writer asks for the moment: it must be cheap.
	Load(ctx context.Context, w *Want) (*Loaded, error)
	// Commit writes all of d, durably, or nothing; a lock is given back.
	// ErrMoved where the moment is not d.From.Moment, ErrTaken, ErrUnknown:
	// that also where the context ends after anything was sent. Nothing of d
	// is kept after it returns.
	Commit(ctx context.Context, d *Delta) error

	// Info says what the server is, as it was when it was opened.
	Info() store.Info
	// Close lets go of the server. No method is called after it.
	Close() error
}

// SharedBackend is a Backend that other processes may write to, too. A batch
// calls its methods as it does Load and Commit, but for Time and Changed. Only
// its Commit may answer ErrMoved and ErrUnknown.
type SharedBackend interface {
	Backend

	// Lock shuts out the batches of all others until Commit or Unlock, and
	// loads. A process that stops while it has the lock loses it within
	// seconds; its Commit is then refused with ErrMoved.
	//
	// A Commit of a delta with a Log may give the lock away before the batch is
	// stored, with the log: to whoever locks next it is Loaded.Handed. Batches
	// come to be stored in the order of their locks all the same, and none that
	// stands on one that is not (Delta.Upon).
	Lock(ctx context.Context, w *Want) (*Loaded, error)
	// Unlock gives the lock back without having written. It does no harm
	// where there is none.
	Unlock(ctx context.Context)
	// Committed reports whether the batch with that number is stored, after
	// an ErrUnknown. It waits until the answer cannot change any more, or makes
	// it so, by moving the moment on.
	Committed(ctx context.Context, writer string, number int64) (bool, error)

	// Time is the time by the server's clock.
	Time(ctx context.Context) (time.Time, error)
	// Changed gets a sign when another process may have committed: a channel
	// of capacity 1, closed never.
	Changed() <-chan struct{}
}

// Reading is what readers need. Its methods are called from many goroutines,
// and see all that was committed before they began.
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
	// Before counts the pending tasks that stand before a pending task in its
	// queue, up to most, or all of them where that costs no more; exact says that
	// n is all of them. Of a task that does not wait n is 0; task is nil where
	// there is none.
	Before(ctx context.Context, id string, most int) (n int, exact bool, task *signalbox.Task, err error)
	// Ended lists ended tasks that stand before a place, newest end first.
	Ended(ctx context.Context, before store.EndedSpot, limit int) ([]signalbox.Task, error)
	// Snapshot is that of store.Reader, but for Pauses: they are docs.
	Snapshot(ctx context.Context, heads int) (s store.Snapshot, pauses []Doc, err error)
	// Entries returns journal entries with a Seq above after, oldest first;
	// EntryRange as store.Reader's JournalRange.
	Entries(ctx context.Context, after int64, limit int) ([]Entry, error)
	EntryRange(ctx context.Context) (oldest, newest int64, err error)
	// Doc returns a doc, nil if there is none; Docs lists a kind.
	Doc(ctx context.Context, k DocKey) (*Doc, error)
	Docs(ctx context.Context, p Page) ([]Doc, error)
}

// Whole is a task and what is kept of it: nil where there is nothing.
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

// Counters only grow. They are kept in one place, and each batch writes them.
type Counters struct {
	// Moment stands for the batches that wrote so far. Each adds a random step,
	// so that a server which lost some and went on does not come to one again
	// that somebody knows: only whether two are equal says something.
	Moment     int64
	Generation int64 // from 1
	Seq        int64
	Place      int64
	Fence      int64
	Entry      int64
	EnqueuedMS int64 // newest EnqueuedAt so far
	WokenMS    int64 // up to which Wake has looked; may go back
}
