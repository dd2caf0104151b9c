package httpapi_test

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/internal/cron"
)

// fakeSchedules is a scheduler that fires when a test says so.
type fakeSchedules struct {
	now func() time.Time

	mu   sync.Mutex
	rows map[string]signalbox.Schedule // by id
	runs map[string][]signalbox.ScheduleRun
	made int
	by   []string // who did what

	refuse error                 // what the next change is refused with
	fires  signalbox.ScheduleRun // what Trigger comes to
}

func newFakeSchedules(now func() time.Time) *fakeSchedules {
	return &fakeSchedules{now: now, rows: map[string]signalbox.Schedule{}, runs: map[string][]signalbox.ScheduleRun{}}
}

func (f *fakeSchedules) All(context.Context) ([]signalbox.Schedule, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	var out []signalbox.Schedule
	for _, s := range f.rows {
		out = append(out, s)
	}
	return out, nil
}

func (f *fakeSchedules) Get(_ context.Context, ref string) (signalbox.Schedule, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, s := range f.rows {
		if s.ID == ref || s.Name == ref {
			return s, nil
		}
	}
	return signalbox.Schedule{}, signalbox.Errorf(signalbox.CodeNotFound, "nothing is called %s", ref)
}

// check refuses as the real one does; f.mu is held.
func (f *fakeSchedules) check(s *signalbox.Schedule) error {
	if err := f.refuse; err != nil {
		f.refuse = nil
		return err
	}
	if _, err := cron.Parse(s.Cron); err != nil {
		return signalbox.Invalid("cron_expression", "%s", err)
	}
	if _, err := cron.Zone(s.Timezone); err != nil {
		return signalbox.Invalid("timezone", "%s", err)
	}
	for _, other := range f.rows {
		if other.Name == s.Name && other.ID != s.ID {
			return &signalbox.Error{Code: signalbox.CodeConflict, Field: "name", Message: "there is already a schedule named " + s.Name}
		}
	}
	s.UpdatedAt = f.now()
	return nil
}

func (f *fakeSchedules) Add(_ context.Context, s signalbox.Schedule, by string) (signalbox.Schedule, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if err := f.check(&s); err != nil {
		return s, err
	}
	f.made++
	s.ID, s.Rev, s.CreatedAt = fmt.Sprintf("sched-%026d", f.made), 1, f.now()
	if s.Overlap == "" {
		s.Overlap, s.Missed, s.OnFull = signalbox.OverlapQueue, signalbox.MissedOnce, signalbox.FullSkip
	}
	f.rows[s.ID] = s
	f.by = append(f.by, "add "+s.Name+" by "+by)
	return s, nil
}

func (f *fakeSchedules) Edit(_ context.Context, s signalbox.Schedule, by string) (signalbox.Schedule, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if err := f.check(&s); err != nil {
		return s, err
	}
	s.Rev++
	s.CreatedAt, s.Overlap, s.Missed, s.OnFull = f.rows[s.ID].CreatedAt, signalbox.OverlapQueue, signalbox.MissedOnce, signalbox.FullSkip
	f.rows[s.ID] = s
	f.by = append(f.by, "edit "+s.Name+" by "+by)
	return s, nil
}

func (f *fakeSchedules) Remove(_ context.Context, ref, by string) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.by = append(f.by, "remove "+f.rows[ref].Name+" by "+by)
	delete(f.rows, ref)
	return nil
}

func (f *fakeSchedules) SetEnabled(_ context.Context, ref string, on bool, by string) (signalbox.Schedule, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	s := f.rows[ref]
	s.Enabled = on
	f.rows[ref] = s
	f.by = append(f.by, fmt.Sprintf("enabled %v %s by %s", on, s.Name, by))
	return s, nil
}

func (f *fakeSchedules) Trigger(_ context.Context, ref, by string) (signalbox.ScheduleRun, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if err := f.refuse; err != nil {
		f.refuse = nil
		return signalbox.ScheduleRun{}, err
	}
	run := f.fires
	if run.Status == "" {
		run.Status = signalbox.RunHeld
	}
	run.ID, run.ScheduleID, run.Trigger, run.By, run.Nominal, run.FiredAt = fmt.Sprintf("run-%026d", len(f.runs[ref])+1), ref, signalbox.TriggerManual, by, f.now(), f.now()
	f.runs[ref] = slices.Insert(f.runs[ref], 0, run)
	s := f.rows[ref]
	s.LastRun, s.LastStatus, s.LastError = run.FiredAt, run.Status, run.Error
	if run.QueueID != "" {
		s.LastQueueID = run.QueueID
	}
	f.rows[ref] = s
	return run, nil
}

func (f *fakeSchedules) Runs(_ context.Context, id string, limit int) ([]signalbox.ScheduleRun, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(f.runs[id][:min(limit, len(f.runs[id]))]), nil
}

func (f *fakeSchedules) Next(s signalbox.Schedule, n int) []time.Time {
	expr, err := cron.Parse(s.Cron)
	zone, bad := cron.Zone(s.Timezone)
	if err != nil || bad != nil || !s.Enabled {
		return nil
	}
	var out []time.Time
	for at := f.now(); len(out) < n; out = append(out, at) {
		at = expr.Next(at, zone)
	}
	return out
}

// Due is a moment after the cursor where a test set one, else the next instant.
func (f *fakeSchedules) Due(s signalbox.Schedule) time.Time {
	if next := f.Next(s, 1); len(next) == 1 && s.Cursor.IsZero() {
		return next[0]
	}
	return s.Cursor
}

func (f *fakeSchedules) Zone() string { return "Europe/Berlin" }
