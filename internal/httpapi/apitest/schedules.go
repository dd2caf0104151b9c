package apitest

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/internal/cron"
)

// Schedules is a fake scheduler, which fires only by Trigger.
type Schedules struct {
	Now func() time.Time

	mu        sync.Mutex
	ByID      map[string]signalbox.Schedule
	RunsOf    map[string][]signalbox.ScheduleRun // by schedule id, newest first
	made      int
	ChangedBy []string // one line for each change: what was done to which schedule by whom

	Refuse        error                 // the error of the next change; then nil again
	TriggerResult signalbox.ScheduleRun // the result of Trigger; its zero fields are filled in
}

// NewSchedules returns a scheduler without schedules.
func NewSchedules(now func() time.Time) *Schedules {
	return &Schedules{Now: now, ByID: map[string]signalbox.Schedule{}, RunsOf: map[string][]signalbox.ScheduleRun{}}
}

func (f *Schedules) All(context.Context) ([]signalbox.Schedule, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	var out []signalbox.Schedule
	for _, s := range f.ByID {
		out = append(out, s)
	}
	return out, nil
}

func (f *Schedules) Get(_ context.Context, ref string) (signalbox.Schedule, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, s := range f.ByID {
		if s.ID == ref || s.Name == ref {
			return s, nil
		}
	}
	return signalbox.Schedule{}, signalbox.Errorf(signalbox.CodeNotFound, "nothing is called %s", ref)
}

// check validates a schedule like the real scheduler; the caller holds f.mu.
func (f *Schedules) check(s *signalbox.Schedule) error {
	if err := f.Refuse; err != nil {
		f.Refuse = nil
		return err
	}
	if _, err := cron.Parse(s.Cron); err != nil {
		return signalbox.Invalid("cron_expression", "%s", err)
	}
	if _, err := cron.Zone(s.Timezone); err != nil {
		return signalbox.Invalid("timezone", "%s", err)
	}
	for _, other := range f.ByID {
		if other.Name == s.Name && other.ID != s.ID {
			return &signalbox.Error{Code: signalbox.CodeConflict, Field: "name", Message: "there is already a schedule named " + s.Name}
		}
	}
	s.UpdatedAt = f.Now()
	return nil
}

func (f *Schedules) Add(_ context.Context, s signalbox.Schedule, by string) (signalbox.Schedule, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if err := f.check(&s); err != nil {
		return s, err
	}
	f.made++
	s.ID, s.Rev, s.CreatedAt = fmt.Sprintf("sched-%026d", f.made), 1, f.Now()
	if s.Overlap == "" {
		s.Overlap, s.Missed, s.OnFull = signalbox.OverlapQueue, signalbox.MissedOnce, signalbox.FullSkip
	}
	f.ByID[s.ID] = s
	f.ChangedBy = append(f.ChangedBy, "add "+s.Name+" by "+by)
	return s, nil
}

func (f *Schedules) Edit(_ context.Context, s signalbox.Schedule, by string) (signalbox.Schedule, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if err := f.check(&s); err != nil {
		return s, err
	}
	s.Rev++
	s.CreatedAt, s.Overlap, s.Missed, s.OnFull = f.ByID[s.ID].CreatedAt, signalbox.OverlapQueue, signalbox.MissedOnce, signalbox.FullSkip
	f.ByID[s.ID] = s
	f.ChangedBy = append(f.ChangedBy, "edit "+s.Name+" by "+by)
	return s, nil
}

func (f *Schedules) Remove(_ context.Context, ref, by string) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.ChangedBy = append(f.ChangedBy, "remove "+f.ByID[ref].Name+" by "+by)
	delete(f.ByID, ref)
	return nil
}

func (f *Schedules) SetEnabled(_ context.Context, ref string, on bool, by string) (signalbox.Schedule, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	s := f.ByID[ref]
	s.Enabled = on
	f.ByID[ref] = s
	f.ChangedBy = append(f.ChangedBy, fmt.Sprintf("enabled %v %s by %s", on, s.Name, by))
	return s, nil
}

func (f *Schedules) Trigger(_ context.Context, ref, by string) (signalbox.ScheduleRun, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if err := f.Refuse; err != nil {
		f.Refuse = nil
		return signalbox.ScheduleRun{}, err
	}
	run := f.TriggerResult
	if run.Status == "" {
		run.Status = signalbox.RunHeld
	}
	run.ID, run.ScheduleID, run.Trigger, run.By, run.Nominal, run.FiredAt = fmt.Sprintf("run-%026d", len(f.RunsOf[ref])+1), ref, signalbox.TriggerManual, by, f.Now(), f.Now()
	f.RunsOf[ref] = slices.Insert(f.RunsOf[ref], 0, run)
	s := f.ByID[ref]
	s.LastRun, s.LastStatus, s.LastError = run.FiredAt, run.Status, run.Error
	if run.QueueID != "" {
		s.LastQueueID = run.QueueID
	}
	f.ByID[ref] = s
	return run, nil
}

func (f *Schedules) Runs(_ context.Context, id string, limit int) ([]signalbox.ScheduleRun, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(f.RunsOf[id][:min(limit, len(f.RunsOf[id]))]), nil
}

func (f *Schedules) Next(s signalbox.Schedule, n int) []time.Time {
	expr, err := cron.Parse(s.Cron)
	zone, bad := cron.Zone(s.Timezone)
	if err != nil || bad != nil || !s.Enabled {
		return nil
	}
	var out []time.Time
	for at := f.Now(); len(out) < n; out = append(out, at) {
		at = expr.Next(at, zone)
	}
	return out
}

// Due is the cursor if a test set one, else the next time of the cron expression.
func (f *Schedules) Due(s signalbox.Schedule) time.Time {
	if next := f.Next(s, 1); len(next) == 1 && s.Cursor.IsZero() {
		return next[0]
	}
	return s.Cursor
}

func (f *Schedules) Zone() string { return "Europe/Berlin" }

// WithSchedules gives a director a fake scheduler, and sets f to it.
func WithSchedules(f **Schedules) func(*Options) {
	return func(o *Options) {
		now := o.Engine.Now
		if now == nil {
			now = time.Now
		}
		*f = NewSchedules(now)
		o.Config.Schedules = *f
	}
}
