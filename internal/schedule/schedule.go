// Package schedule makes submissions of instants: it decides what a schedule
// does when it is due, keeps that decision before it acts on it, and goes on
// with it after a restart. It knows neither a store nor a transport: Book
// keeps, Queue takes.
package schedule

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/signalbox-ai/signalbox"
)

// ErrStale is returned by Book.Put when the row is no longer the one that the
// change was made from: read it again, decide again.
var ErrStale = errors.New("the schedule changed in the meantime")

// Book keeps schedules and their runs. Its methods are those of the store's
// contract; ErrStale is returned where a row changed in the meantime.
type Book interface {
	Schedules(ctx context.Context) ([]signalbox.Schedule, error)
	Schedule(ctx context.Context, id string) (signalbox.Schedule, error)
	Put(ctx context.Context, s signalbox.Schedule, runs []signalbox.ScheduleRun, entry signalbox.Entry) (signalbox.Schedule, error)
	Delete(ctx context.Context, id string, entry signalbox.Entry) (was bool, err error)
	Runs(ctx context.Context, id string, limit int) ([]signalbox.ScheduleRun, error)
	Open(ctx context.Context) ([]signalbox.ScheduleRun, error)
	// Changes gives a sign after another than this scheduler may have changed a
	// schedule. Signs coalesce.
	Changes() (signs <-chan struct{}, stop func())
}

// Queue takes submissions.
type Queue interface {
	// Submit submits what the schedule says. The same key makes at most one
	// task, however often it is called. Errors are *signalbox.Error:
	// CodeQueueFull (in a *Full, which says how many wait), CodeIdempotency (the
	// key made a task of an earlier text), CodeUnavailable (nobody answered: it
	// may have been submitted), CodeNotFound without a Field where there is
	// nobody to submit to. CodeUnavailable, CodeStoreFailed, CodeStoreFull and CodeRateLimited
	// are tried again.
	Submit(ctx context.Context, s signalbox.Schedule, key string) (Submitted, error)
	// Ended reports whether a task has ended; one that does not exist has.
	Ended(ctx context.Context, queueID string) (bool, error)
	// Cancel asks for the end of a task. One that has ended is no error.
	Cancel(ctx context.Context, queueID, by string) error
	// Ends gives a sign after tasks of schedules may have ended. Signs coalesce.
	Ends() (signs <-chan struct{}, stop func())
}

// Submitted is the answer to a submission.
type Submitted struct {
	QueueID string
	Known   bool
}

// Full is the error of a queue that has no room.
type Full struct {
	Waiting int // how many wait; 0 where that is not known
	Err     error
}

func (f *Full) Error() string { return f.Err.Error() }
func (f *Full) Unwrap() error { return f.Err }

// Options configure a Scheduler.
type Options struct {
	Zone string // time zone of schedules that name none; "" is UTC
	Now  func() time.Time
	Log  *slog.Logger
	// KeyLife is how long the queue knows a key at least: a firing that was begun
	// before a restart is gone on with no later, for it might make a second
	// task. 0: for ever.
	KeyLife time.Duration
	// Check refuses a schedule that its owner may not have (any more): before it
	// is stored, and before each firing. nil: all may.
	Check func(ctx context.Context, s signalbox.Schedule) error
}

// The times by which a scheduler goes.
const (
	// takeOver is how long a firing that another scheduler began, or this one
	// before it was restarted, is left to it.
	takeOver = 30 * time.Second
	// lookEvery is how often the clock is looked at though nothing is due: it may
	// have jumped.
	lookEvery = time.Second
	// readEvery is how often all schedules are read though nothing was
	// announced.
	readEvery = time.Minute
	// heldEvery is how often the task before a held firing is asked for though no
	// end was announced, endsEvery how often at most because one was.
	heldEvery = 10 * time.Second
	endsEvery = 100 * time.Millisecond
	// Backoff of what is tried again.
	firstBackoff = time.Second
	mostBackoff  = time.Minute
	// slowest is how long a submission may take before it counts as unanswered.
	slowest = time.Minute
	// lastWords is how long the end of a firing may take to be written after the
	// scheduler was told to end.
	lastWords = 5 * time.Second
)

// maxTurns is how many schedules are worked on side by side: so many may hang
// in slow submissions before another has to wait.
const maxTurns = 1000

// Key is the idempotency key of a firing's submission.
func Key(scheduleID, runID string) string { return "schedule:" + scheduleID + ":" + runID }
