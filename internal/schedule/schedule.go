// Package schedule makes submissions of instants: it decides what a schedule
// does when it is due, keeps that decision before it acts on it, and goes on
// with it after a restart. It knows neither a store nor a transport: Book
// keeps, Queue takes.
package schedule

import (
	"context"
	"log/slog"
	"time"

	"github.com/signalbox-ai/signalbox"
)

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
	// task, however often it is called; known says that the key had made one
	// before. Errors are *signalbox.Error: CodeQueueFull (Waiting is how many
	// wait), CodeIdempotency (the key made a task of an earlier text),
	// CodeUnavailable (nobody answered: it may have been submitted),
	// CodeNotFound where there is nobody to submit to.
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

// Options configure a Scheduler.
type Options struct {
	Zone string // time zone of schedules that name none; "" is UTC
	Now  func() time.Time
	Log  *slog.Logger
	// Check refuses a schedule that its owner may not have (any more): before it
	// is stored, and before each firing. nil: all may.
	Check func(ctx context.Context, s signalbox.Schedule) error
}

// Scheduler fires schedules. Make one with New.
type Scheduler struct{}
