package schedule

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/signalbox-ai/signalbox"
)

// load reads all schedules and open runs. Local changes made meanwhile are kept; complete is
// false if schedules may be missing because of them.
func (s *Scheduler) load(ctx context.Context) (complete bool, err error) {
	s.mu.Lock()
	before := s.changes
	revs := make(map[string]int64, len(s.entries))
	for id, e := range s.entries {
		revs[id] = e.row.Rev
	}
	s.mu.Unlock()
	rows, err := s.store.Schedules(ctx)
	if err != nil {
		return false, err
	}
	runs, err := s.store.Open(ctx)
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
	unchanged := s.changes == before
	complete = true
	for i := range rows {
		id := rows[i].ID
		seen[id] = true
		s.mergeRow(&rows[i], open[id], revs, unchanged)
		complete = complete && s.entries[id] != nil
	}
	if unchanged { // else it may have been added meanwhile
		for id, e := range s.entries {
			if !seen[id] {
				s.drop(e)
			}
		}
	}
	return complete, nil
}

// mergeRow applies one schedule that was read.
func (s *Scheduler) mergeRow(row *signalbox.Schedule, open []signalbox.ScheduleRun, revs map[string]int64, unchanged bool) {
	e := s.entries[row.ID]
	if e == nil {
		if !unchanged { // it may have been removed meanwhile: the next load shows
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
	e.open, e.runsStale = merge(e.open, open), false
	s.rearm(e)
}

// merge converts open runs to firings, and keeps the state of known ones.
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

// applyStored applies a row that was stored here.
func (s *Scheduler) applyStored(row signalbox.Schedule) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.changes++
	e := s.entries[row.ID]
	if e != nil && !e.row.CreatedAt.Equal(row.CreatedAt) { // another scheduler replaced it
		s.drop(e)
		e = nil
	}
	if e == nil {
		e = &entry{index: -1}
		s.entries[row.ID] = e
	}
	if row.Rev > e.row.Rev {
		e.runsStale = e.runsStale || row.Rev > e.row.Rev+1
		s.set(e, row)
	}
	s.rearm(e)
	s.wakeLoop()
}

// forget drops a schedule that was removed here.
func (s *Scheduler) forget(id string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.changes++
	if e := s.entries[id]; e != nil {
		s.drop(e)
	}
}

// logRun writes the log lines of the seed (work-queue, Scheduler Integration). Their message is
// empty.
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
		if row.Agent != "" { // the seed execution-queue has this line
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
	return s.store.Schedules(ctx)
}

// Get returns a schedule by ID or name. Error: CodeNotFound.
func (s *Scheduler) Get(ctx context.Context, ref string) (signalbox.Schedule, error) {
	row, err := s.store.Schedule(ctx, ref)
	if signalbox.CodeOf(err) != signalbox.CodeNotFound {
		return row, err
	}
	s.mu.Lock()
	id := s.names[ref]
	s.mu.Unlock()
	if id != "" {
		if row, err = s.store.Schedule(ctx, id); err == nil && row.Name == ref {
			return row, nil
		}
	}
	if !signalbox.ValidName(ref) {
		return signalbox.Schedule{}, notFound(ref)
	}
	rows, err := s.store.Schedules(ctx) // another scheduler may have added it just now
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
	return s.store.Runs(ctx, id, limit)
}

// Next returns the next n instants at most: none while the schedule is disabled.
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

// Due returns the next instant after the cursor, which is in the past if no scheduler ran; zero
// while disabled.
func (s *Scheduler) Due(row signalbox.Schedule) time.Time {
	expr, zone, err := s.times(&row)
	if err != nil || !row.Enabled {
		return time.Time{}
	}
	return expr.Next(row.Cursor, zone)
}

// Zone is the time zone of schedules that name none.
func (s *Scheduler) Zone() string { return s.opts.Zone }
