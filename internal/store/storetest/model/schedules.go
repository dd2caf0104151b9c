package model

import (
	"cmp"
	"context"
	"slices"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/internal/store"
)

// plan is a schedule with its firings.
type plan struct {
	row  signalbox.Schedule
	runs []signalbox.ScheduleRun // newest first
	open int                     // of the runs
}

// PutSchedule stores a schedule with its runs.
func (s *Store) PutSchedule(ctx context.Context, row signalbox.Schedule, runs []signalbox.ScheduleRun, e signalbox.Entry) (signalbox.Schedule, error) {
	if err := s.lock(ctx); err != nil {
		return signalbox.Schedule{}, err
	}
	defer s.mu.Unlock()
	p := s.plans[row.ID]
	if err := s.checkSchedule(p, &row, runs); err != nil {
		return signalbox.Schedule{}, err
	}
	if p == nil {
		p = &plan{}
		s.plans[row.ID] = p
	} else {
		delete(s.planNames, p.row.Name)
	}
	row.Rev++
	p.row = row.Clone()
	s.planNames[row.Name] = row.ID
	for _, r := range runs {
		r.ScheduleID = row.ID
		p.keep(r)
	}
	p.cut()
	s.countOpen(row.ID, p)
	if e.Kind != "" {
		s.note(e)
	}
	return row.Clone(), nil
}

// checkSchedule checks everything before anything is stored.
func (s *Store) checkSchedule(p *plan, row *signalbox.Schedule, runs []signalbox.ScheduleRun) error {
	was := int64(0)
	if p != nil {
		was = p.row.Rev
	}
	if row.Rev != was || (p == nil) != (row.Rev == 0) {
		return store.ErrStale
	}
	if other, taken := s.planNames[row.Name]; taken && other != row.ID {
		return store.ScheduleNameTaken(row.Name, other)
	}
	if p == nil && len(s.plans) >= signalbox.MaxSchedules {
		return store.TooManySchedules()
	}
	seen := map[string]bool{}
	for i := range runs {
		id := runs[i].ID
		if seen[id] || (p != nil && p.decided(id)) {
			return store.RunDecided(row.ID, id)
		}
		seen[id] = true
	}
	return nil
}

// decided reports whether the run with that id exists and is no longer open.
func (p *plan) decided(id string) bool {
	n := p.find(id)
	return n >= 0 && !p.runs[n].Status.Open()
}

func (p *plan) find(id string) int {
	return slices.IndexFunc(p.runs, func(r signalbox.ScheduleRun) bool { return r.ID == id })
}

// keep inserts or replaces a run.
func (p *plan) keep(r signalbox.ScheduleRun) {
	if n := p.find(r.ID); n >= 0 {
		p.runs = slices.Delete(p.runs, n, n+1)
	}
	n, _ := slices.BinarySearchFunc(p.runs, r, newestRun)
	p.runs = slices.Insert(p.runs, n, r)
}

func newestRun(a, b signalbox.ScheduleRun) int {
	return cmp.Or(cmp.Compare(b.FiredAt.UnixMilli(), a.FiredAt.UnixMilli()), cmp.Compare(b.ID, a.ID))
}

// cut drops the oldest runs beyond those that are kept, but never an open one.
func (p *plan) cut() {
	p.open = 0
	kept := p.runs[:0]
	for n, r := range p.runs {
		if r.Status.Open() {
			p.open++
		} else if n >= signalbox.MaxScheduleRuns {
			continue
		}
		kept = append(kept, r)
	}
	clear(p.runs[len(kept):])
	p.runs = kept
}

// countOpen updates which schedules have open runs.
func (s *Store) countOpen(id string, p *plan) {
	delete(s.openPlans, id)
	if p.open > 0 {
		s.openPlans[id] = p
	}
}

// DeleteSchedule deletes a schedule with its runs.
func (s *Store) DeleteSchedule(ctx context.Context, id string, e signalbox.Entry) (bool, error) {
	if err := s.lock(ctx); err != nil {
		return false, err
	}
	defer s.mu.Unlock()
	p := s.plans[id]
	if p == nil {
		return false, nil
	}
	delete(s.planNames, p.row.Name)
	delete(s.openPlans, id)
	delete(s.plans, id)
	if e.Kind != "" {
		s.note(e)
	}
	return true, nil
}

// Schedules lists all schedules by name.
func (s *Store) Schedules(ctx context.Context) ([]signalbox.Schedule, error) {
	if err := s.lock(ctx); err != nil {
		return nil, err
	}
	defer s.mu.Unlock()
	list := make([]signalbox.Schedule, 0, len(s.plans))
	for _, p := range s.plans {
		list = append(list, p.row.Clone())
	}
	slices.SortFunc(list, func(a, b signalbox.Schedule) int { return cmp.Compare(a.Name, b.Name) })
	return list, nil
}

// Schedule returns a schedule by id.
func (s *Store) Schedule(ctx context.Context, id string) (signalbox.Schedule, error) {
	if err := s.lock(ctx); err != nil {
		return signalbox.Schedule{}, err
	}
	defer s.mu.Unlock()
	p := s.plans[id]
	if p == nil {
		return signalbox.Schedule{}, store.NoSchedule(id)
	}
	return p.row.Clone(), nil
}

// ScheduleRuns lists runs of a schedule, newest first.
func (s *Store) ScheduleRuns(ctx context.Context, id string, limit int) ([]signalbox.ScheduleRun, error) {
	if err := s.lock(ctx); err != nil {
		return nil, err
	}
	defer s.mu.Unlock()
	p := s.plans[id]
	if p == nil {
		return nil, nil
	}
	return slices.Clone(p.runs[:max(0, min(limit, len(p.runs)))]), nil
}

// OpenRuns lists the open runs of all schedules.
func (s *Store) OpenRuns(ctx context.Context) ([]signalbox.ScheduleRun, error) {
	if err := s.lock(ctx); err != nil {
		return nil, err
	}
	defer s.mu.Unlock()
	var list []signalbox.ScheduleRun
	for _, p := range s.openPlans {
		for _, r := range p.runs {
			if r.Status.Open() {
				list = append(list, r)
			}
		}
	}
	slices.SortFunc(list, func(a, b signalbox.ScheduleRun) int {
		return cmp.Or(cmp.Compare(a.FiredAt.UnixMilli(), b.FiredAt.UnixMilli()), cmp.Compare(a.ScheduleID, b.ScheduleID), cmp.Compare(a.ID, b.ID))
	})
	return list, nil
}
