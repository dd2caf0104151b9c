package store

import (
	"context"

	"github.com/signalbox-ai/signalbox"
)

// ScheduleWriter changes schedules and their runs.
type ScheduleWriter interface {
	// PutSchedule stores a schedule if the stored row still has revision s.Rev (0: if none with its id
	// exists), else ErrStale. In the same step it stores runs by id: new ones, and changes of open ones. A
	// run that is stored and no longer open is CodeConflict, so that each instant is decided once. The newest
	// MaxScheduleRuns runs of a schedule, by FiredAt then ID, and all open ones are kept. CodeConflict with
	// the field name if another schedule has its name; CodeConflict if there would be more than MaxSchedules.
	// An entry with a Kind is written. It returns the stored row.
	PutSchedule(ctx context.Context, s signalbox.Schedule, runs []signalbox.ScheduleRun, entry signalbox.Entry) (signalbox.Schedule, error)

	// DeleteSchedule deletes a schedule with its runs, and reports whether it existed; if not, no entry is
	// written.
	DeleteSchedule(ctx context.Context, id string, entry signalbox.Entry) (was bool, err error)
}

// ScheduleReader reads schedules and their runs.
type ScheduleReader interface {
	// Schedules lists all schedules by name; Schedule returns one by id, or
	// CodeNotFound.
	Schedules(ctx context.Context) ([]signalbox.Schedule, error)
	Schedule(ctx context.Context, id string) (signalbox.Schedule, error)

	// ScheduleRuns lists runs of a schedule, newest first by FiredAt, then ID, at most limit. An unknown
	// schedule has none.
	ScheduleRuns(ctx context.Context, id string, limit int) ([]signalbox.ScheduleRun, error)

	// OpenRuns lists the open runs of all schedules, oldest first.
	OpenRuns(ctx context.Context) ([]signalbox.ScheduleRun, error)
}

// Errors of schedules, with the same text in all stores.

// NoSchedule is the error for an unknown schedule.
func NoSchedule(id string) error {
	return signalbox.Errorf(signalbox.CodeNotFound, "there is no schedule %q: it never existed or has been removed", id)
}

// ScheduleNameTaken is the error if another schedule has the name.
func ScheduleNameTaken(name, other string) error {
	return &signalbox.Error{Code: signalbox.CodeConflict, Field: "name",
		Message: "schedule " + other + " is called " + name + " already: choose another name, or change that one"}
}

// TooManySchedules is the error at MaxSchedules.
func TooManySchedules() error {
	return signalbox.Errorf(signalbox.CodeConflict, "there are %d schedules already, which is the most: remove some first", signalbox.MaxSchedules)
}

// RunDecided is the error for a run that is no longer open.
func RunDecided(schedule, id string) error {
	return signalbox.Errorf(signalbox.CodeConflict, "firing %s of schedule %s is decided already: it is unchanged", id, schedule)
}
