package schedule

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/signalbox-ai/signalbox"
)

// load reads all schedules and open runs. What was changed here while it read is
// newer than what it read, and stays; whole is false where that leaves it open
// whether there are schedules that are not known.
func (s *Scheduler) load(ctx context.Context) (whole bool, err error) {
	s.mu.Lock()
	before := s.changes
	revs := make(map[string]int64, len(s.entries))
	for id, e := range s.entries {
		revs[id] = e.row.Rev
	}
	s.mu.Unlock()
	rows, err := s.book.Schedules(ctx)
	if err != nil {
		return false, err
	}
	runs, err := s.book.Open(ctx)
	if err != nil {
		return false, err
	}
	open := map[string][]signalbox.ScheduleRun{}
	for _, r := range runs {
		open[r.ScheduleID] = append(open[r.ScheduleID], r)
	}

	s.mu.Lock()
	defer s.mu.Unlock()
	seen := make(map[string]bool, len(rows))
	quiet := s.changes == before
	whole = true
	for i := range rows {
		id := rows[i].ID
		seen[id] = true
		s.learn(&rows[i], open[id], revs, quiet)
		whole = whole && s.entries[id] != nil
	}
	if quiet { // else one may be new
		for id, e := range s.entries {
			if !seen[id] {
				s.drop(e)
			}
		}
	}
	return whole, nil
}

// learn takes over what was read of one schedule.
func (s *Scheduler) learn(row *signalbox.Schedule, open []signalbox.ScheduleRun, revs map[string]int64, quiet bool) {
	e := s.entries[row.ID]
	if e == nil {
		if !quiet { // it may have been removed since: the next reading tells
			return
		}
		e = &entry{index: -1}
		s.entries[row.ID] = e
	} else if e.busy || e.row.Rev != revs[row.ID] {
		return
	}
	if row.Rev != e.row.Rev {
		s.set(e, *row)
	}
	e.open, e.skipped = merge(e.open, open), false
	s.arrange(e)
}

// merge makes firings of open runs; of those that are known stays what is known
// beside the run.
func merge(known []firing, runs []signalbox.ScheduleRun) []firing {
	open := make([]firing, 0, len(runs))
	for _, r := range runs {
		if !r.Status.Open() {
			continue
		}
		f := firing{run: r}
		if i := slices.IndexFunc(known, func(f firing) bool { return f.run.ID == r.ID }); i >= 0 {
			f = known[i]
			f.run = r
		}
		open = append(open, f)
	}
	slices.SortFunc(open, func(a, b firing) int {
		return cmp.Or(a.run.FiredAt.Compare(b.run.FiredAt), cmp.Compare(a.run.ID, b.run.ID))
	})
	return open
}

// adopt takes over a row that was written here.
func (s *Scheduler) adopt(row signalbox.Schedule) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.changes++
	e := s.entries[row.ID]
	if e != nil && !e.row.CreatedAt.Equal(row.CreatedAt) { // another of that id was removed elsewhere
		s.drop(e)
		e = nil
	}
	if e == nil {
		e = &entry{index: -1}
		s.entries[row.ID] = e
	}
	if row.Rev > e.row.Rev {
		e.skipped = e.skipped || row.Rev > e.row.Rev+1
		s.set(e, row)
	}
	s.arrange(e)
	s.look()
}

// leave forgets a schedule that was removed.
func (s *Scheduler) leave(id string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.changes++
	if e := s.entries[id]; e != nil {
		s.drop(e)
	}
}

// logRun writes the seed's log lines (work-queue, Scheduler Integration). The
// message is empty: the line is its fields.
func (s *Scheduler) logRun(row *signalbox.Schedule, r *signalbox.ScheduleRun) {
	skipped := func(reason string, more ...any) {
		s.log.Warn("", append([]any{"job", row.Name, "action", "skipped", "reason", reason}, more...)...)
	}
	switch r.Status {
	case signalbox.RunFiring:
		if r.Attempts > 0 {
			s.log.Warn("", "job", row.Name, "action", "retry", "attempt", r.Attempts, "error", r.Error)
		}
	case signalbox.RunHeld:
		s.log.Info("", "job", row.Name, "action", "held", "queue_id", r.Previous)
	case signalbox.RunQueued:
		s.log.Info("", "job", row.Name, "action", "queued", "queue_id", r.QueueID)
		if row.Agent != "" { // the line of the seed execution-queue besides
			s.log.Info(fmt.Sprintf("[Schedule] Agent '%s' execution %s: queued", row.Agent, r.QueueID))
		}
	case signalbox.SkippedQueueFull:
		skipped("queue_full")
	case signalbox.SkippedNoDirector:
		skipped("no_director_url")
	case signalbox.SkippedBusy:
		skipped("busy")
	case signalbox.SkippedMissed:
		skipped("missed", "instants", 1+r.Missed)
	case signalbox.SkippedError:
		skipped("error", "error", r.Error)
	}
}

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
