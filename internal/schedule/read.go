package schedule

import (
	"context"
	"time"

	"github.com/signalbox-ai/signalbox"
)

// All lists the schedules by name.
func (s *Scheduler) All(ctx context.Context) ([]signalbox.Schedule, error) {
	return s.book.Schedules(ctx)
}

// Get returns a schedule by its id or its name. Error: CodeNotFound.
func (s *Scheduler) Get(ctx context.Context, ref string) (signalbox.Schedule, error) {
	row, err := s.book.Schedule(ctx, ref)
	if signalbox.CodeOf(err) != signalbox.CodeNotFound {
		return row, err
	}
	s.mu.Lock()
	id := s.names[ref]
	s.mu.Unlock()
	if id != "" {
		if row, err = s.book.Schedule(ctx, id); err == nil && row.Name == ref {
			return row, nil
		}
	}
	if !signalbox.ValidName(ref) {
		return signalbox.Schedule{}, notFound(ref)
	}
	rows, err := s.book.Schedules(ctx) // it may have been made a moment ago, elsewhere
	if err != nil {
		return signalbox.Schedule{}, err
	}
	for i := range rows {
		if rows[i].Name == ref {
			return rows[i], nil
		}
	}
	return signalbox.Schedule{}, notFound(ref)
}

func notFound(ref string) *signalbox.Error {
	return &signalbox.Error{Code: signalbox.CodeNotFound, Field: "schedule", Message: "there is no schedule " + signalbox.Preview(ref) + ": signalbox schedules lists them"}
}

// Runs lists the newest firings of a schedule, at most limit.
func (s *Scheduler) Runs(ctx context.Context, id string, limit int) ([]signalbox.ScheduleRun, error) {
	return s.book.Runs(ctx, id, limit)
}

// Next returns the instants of a schedule at which it will fire, n at most:
// none while it is disabled.
func (s *Scheduler) Next(row signalbox.Schedule, n int) []time.Time {
	expr, zone, err := s.times(&row)
	if err != nil || !row.Enabled {
		return nil
	}
	var list []time.Time
	for at := expr.Next(latest(row.Cursor, s.now()), zone); len(list) < n && !at.IsZero(); at = expr.Next(at, zone) {
		list = append(list, at)
	}
	return list
}

// Due returns the next instant of a schedule, which lies in the past where
// nobody fired it; zero while it is disabled.
func (s *Scheduler) Due(row signalbox.Schedule) time.Time {
	expr, zone, err := s.times(&row)
	if err != nil || !row.Enabled {
		return time.Time{}
	}
	return expr.Next(row.Cursor, zone)
}

// Zone is the time zone of schedules that name none.
func (s *Scheduler) Zone() string { return s.opts.Zone }
