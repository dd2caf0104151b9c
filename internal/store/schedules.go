package store

import (
	"context"

	"github.com/signalbox-ai/signalbox"
)

// ScheduleWriter changes schedules and their runs.
type ScheduleWriter interface {
	// PutSchedule stores a schedule where the stored row still has revision
	// s.Rev (0: where there is none with its id), else ErrStale, and its runs
	// in the same step: new ones, and those that are stored and open, by id;
	// one that is stored and no longer open is CodeConflict, so that an instant
	// is decided once. Of the runs of a schedule the newest MaxScheduleRuns, by
	// FiredAt then ID, and all that are open are kept. CodeConflict with the
	// field name if another schedule has its name, and where a new one
	// would be more than MaxSchedules. An entry with a Kind is written. It
	// returns the row as stored.
	PutSchedule(ctx context.Context, s signalbox.Schedule, runs []signalbox.ScheduleRun, entry signalbox.Entry) (signalbox.Schedule, error)

	// DeleteSchedule forgets a schedule with its runs, and reports whether it
	// was there; if not, no entry is written.
	DeleteSchedule(ctx context.Context, id string, entry signalbox.Entry) (was bool, err error)
}

// ScheduleReader reads schedules and their runs.
type ScheduleReader interface {
	// Schedules lists all schedules by name; Schedule returns one by id, or
	// CodeNotFound.
	Schedules(ctx context.Context) ([]signalbox.Schedule, error)
	Schedule(ctx context.Context, id string) (signalbox.Schedule, error)

	// ScheduleRuns lists runs of a schedule, the newest first by FiredAt, then
	// ID, at most limit. Of a schedule that does not exist there are none.
	ScheduleRuns(ctx context.Context, id string, limit int) ([]signalbox.ScheduleRun, error)

	// OpenRuns lists the runs of all schedules that are open, oldest first.
	OpenRuns(ctx context.Context) ([]signalbox.ScheduleRun, error)
}

// The refusals of schedules, which all stores word alike.

// NoSchedule says that there is no schedule with an id.
func NoSchedule(id string) error {
	return signalbox.Errorf(signalbox.CodeNotFound, "there is no schedule %q: it never existed or has been removed", id)
}

// ScheduleNameTaken says that another schedule has the name.
func ScheduleNameTaken(name, other string) error {
	return &signalbox.Error{Code: signalbox.CodeConflict, Field: "name",
		Message: "schedule " + other + " is called " + name + " already: choose another name, or change that one"}
}

// TooManySchedules says that there is no room for one more.
func TooManySchedules() error {
	return signalbox.Errorf(signalbox.CodeConflict, "there are %d schedules already, which is the most: remove some first", signalbox.MaxSchedules)
}

// RunDecided says that a firing is no longer open.
func RunDecided(schedule, id string) error {
	return signalbox.Errorf(signalbox.CodeConflict, "firing %s of schedule %s is decided already: it stays as it is", id, schedule)
}
