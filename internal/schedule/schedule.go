// Package schedule fires schedules: it decides what a schedule does when it is
// due, stores the decision before it acts on it, and resumes it after a restart.
// Store and Queue hide where schedules are stored and how tasks are submitted.
package schedule

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/signalbox-ai/signalbox"
)

// ErrStale is returned by Store.Put when the row has changed since it was read:
// read it again and decide again.
var ErrStale = errors.New("the schedule changed in the meantime")

// Store stores schedules and their runs.
type Store interface {
	Schedules(ctx context.Context) ([]signalbox.Schedule, error)
	Schedule(ctx context.Context, id string) (signalbox.Schedule, error)
	Put(ctx context.Context, s signalbox.Schedule, runs []signalbox.ScheduleRun, entry signalbox.Entry) (signalbox.Schedule, error)
	Delete(ctx context.Context, id string, entry signalbox.Entry) (was bool, err error)
	Runs(ctx context.Context, id string, limit int) ([]signalbox.ScheduleRun, error)
	Open(ctx context.Context) ([]signalbox.ScheduleRun, error)
	// Changes signals that another scheduler may have changed a schedule. Signals
	// coalesce.
	Changes() (signs <-chan struct{}, stop func())
}

// Queue takes submissions.
type Queue interface {
	// Submit submits the task of a schedule, at most one for a key. Errors are
	// *signalbox.Error: CodeQueueFull (in a *FullError), CodeIdempotency (the key
	// was used before the schedule was edited), CodeUnavailable (no answer: it may
	// have been submitted), CodeNotFound without a Field if there is no director.
	// CodeUnavailable, CodeStoreFailed, CodeStoreFull and CodeRateLimited are
	// retried.
	Submit(ctx context.Context, s signalbox.Schedule, key string) (Submitted, error)
	// Ended reports whether a task has ended; one that does not exist has.
	Ended(ctx context.Context, queueID string) (bool, error)
	// Cancel cancels a task. It is no error if the task has ended.
	Cancel(ctx context.Context, queueID, by string) error
	// Ends signals that tasks of schedules may have ended. Signals coalesce.
	Ends() (signs <-chan struct{}, stop func())
}

// Submitted is the answer to a submission.
type Submitted struct {
	QueueID string
	Known   bool
}

// FullError is the error of a queue that has no room.
type FullError struct {
	Waiting int // waiting tasks; 0: unknown
	Err     error
}

func (f *FullError) Error() string { return f.Err.Error() }
func (f *FullError) Unwrap() error { return f.Err }

// Options configure a Scheduler.
type Options struct {
	Zone string // time zone of schedules that name none; "" is UTC
	Now  func() time.Time
	Log  *slog.Logger
	// KeyLife is the minimum time the queue remembers a key: a firing from before
	// a restart is not resumed later, since it could make a second task. 0: no limit.
	KeyLife time.Duration
	// Check refuses a schedule that its owner may not have (any more). It is called
	// before a schedule is stored and before each firing. nil: no check.
	Check func(ctx context.Context, s signalbox.Schedule) error
}

const (
	// takeoverDelay is the age from which an open firing of another scheduler, or
	// of this one before a restart, is taken over.
	takeoverDelay = 30 * time.Second
	// clockInterval is how often the clock is checked for jumps.
	clockInterval = time.Second
	// reloadInterval is how often all schedules are read without a change signal.
	reloadInterval = time.Minute
	// heldInterval is how often the task before a held firing is polled without a
	// signal, minEndsInterval the minimum time between polls due to signals.
	heldInterval    = 10 * time.Second
	minEndsInterval = 100 * time.Millisecond
	firstBackoff    = time.Second
	maxBackoff      = time.Minute
	// callTimeout is the timeout of a submission and of a write.
	callTimeout = time.Minute
	// finalWriteTimeout is the timeout of a write in progress when the scheduler is closed.
	finalWriteTimeout = 5 * time.Second
)

// maxTurns is how many schedules are processed in parallel: so many submissions
// may hang before others are delayed.
const maxTurns = 1000

// Key is the idempotency key of a firing's submission.
func Key(scheduleID, runID string) string { return "schedule:" + scheduleID + ":" + runID }
