package memory

import (
	"context"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/internal/store"
)

// PutSchedule stores a schedule with its runs.
func (s *Store) PutSchedule(ctx context.Context, row signalbox.Schedule, runs []signalbox.ScheduleRun, e signalbox.Entry) (signalbox.Schedule, error) {
	panic("being built")
}

// DeleteSchedule forgets a schedule with its runs.
func (s *Store) DeleteSchedule(ctx context.Context, id string, e signalbox.Entry) (bool, error) {
	panic("being built")
}

// Schedules lists all schedules by name.
func (s *Store) Schedules(ctx context.Context) ([]signalbox.Schedule, error) { panic("being built") }

// Schedule returns a schedule by id.
func (s *Store) Schedule(ctx context.Context, id string) (signalbox.Schedule, error) {
	panic("being built")
}

// ScheduleRuns lists runs of a schedule, the newest first.
func (s *Store) ScheduleRuns(ctx context.Context, id string, limit int) ([]signalbox.ScheduleRun, error) {
	panic("being built")
}

// OpenRuns lists the runs of all schedules that are open.
func (s *Store) OpenRuns(ctx context.Context) ([]signalbox.ScheduleRun, error) { panic("being built") }

// Snapshot returns what waits and runs at one moment.
func (s *Store) Snapshot(ctx context.Context, heads int) (store.Snapshot, error) {
	panic("being built")
}
