package schedule

import (
	"cmp"
	"context"
	"slices"

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
