package schedule

import (
	"context"
	"errors"
	"reflect"
	"time"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/internal/cron"
)

// maxCounted is how many skipped instants are counted: a count that reaches it means "or more".
const maxCounted = 10_000

// plan is the decision about the instants of a schedule that have passed.
type plan struct {
	cursor time.Time // the newest of them; zero: none
	runs   []signalbox.ScheduleRun
}

// instants are the instants of an expression in a zone.
type instants struct {
	expr cron.Expr
	zone *time.Location
}

// between lists the newest instants in (after, until], at most most. It searches backwards in growing steps,
// so a long span costs no more than the result.
func (i instants) between(after, until time.Time, most int) []time.Time {
	for back := time.Hour; ; back *= 4 {
		from := until.Add(-back)
		if !from.After(after) {
			from = after
		}
		var list []time.Time
		for t := i.expr.Next(from, i.zone); !t.IsZero() && !t.After(until); t = i.expr.Next(t, i.zone) {
			list = append(list, t)
			if len(list) > 2*most { // keep the newest
				list = append(list[:0], list[len(list)-most:]...)
			}
		}
		if len(list) >= most || from.Equal(after) {
			return list[max(0, len(list)-most):]
		}
	}
}

// count counts the instants in (after, before), up to maxCounted.
func (i instants) count(after, before time.Time) int {
	n := 0
	for t := i.expr.Next(after, i.zone); !t.IsZero() && t.Before(before) && n < maxCounted; t = i.expr.Next(t, i.zone) {
		n++
	}
	return n
}

// newPlan decides about the instants after the cursor of a schedule, except those decided
// before, by run ID.
func newPlan(row *signalbox.Schedule, due instants, now time.Time, decided map[string]bool) plan {
	if !row.Enabled {
		return plan{}
	}
	first := due.expr.Next(row.Cursor, due.zone)
	if first.IsZero() || first.After(now) {
		return plan{}
	}
	late := now.Add(-signalbox.OnTime - time.Millisecond) // the newest instant that is too late
	onTime := due.between(latest(row.Cursor, late), now, signalbox.MaxMissed)
	p := plan{cursor: row.Cursor}
	if len(onTime) > 0 {
		p.cursor = onTime[len(onTime)-1]
	}
	fresh := undecided(onTime, decided)
	left := 0
	if !first.After(late) {
		missed := due.between(row.Cursor, late, 1)
		p.cursor = latest(p.cursor, missed[0])
		left = p.missed(row, due, now, late, decided, len(fresh) > 0)
	}
	for _, t := range fresh {
		p.add(signalbox.ScheduleRun{Nominal: t, Trigger: signalbox.TriggerCron, Status: signalbox.RunFiring, Missed: left}, now)
		left = 0
	}
	return p
}

// missed decides about the instants that passed too long ago. It returns how many were skipped
// and not recorded: the next firing records them.
func (p *plan) missed(row *signalbox.Schedule, due instants, now, late time.Time, decided map[string]bool, more bool) int {
	var fire []time.Time
	window := latest(row.Cursor, now.Add(-row.MissedWindow-time.Millisecond))
	switch {
	case row.Missed == signalbox.MissedAll && window.Before(late):
		fire = undecided(due.between(window, late, signalbox.MaxMissed), decided)
	case row.Missed == signalbox.MissedOnce && !more && window.Before(late):
		fire = undecided(due.between(window, late, 1), decided)
	case row.Missed == signalbox.MissedOnce && more: // the firing that is on time replaces them
		return due.count(row.Cursor, late.Add(time.Millisecond))
	}
	if len(fire) == 0 {
		newest := due.between(row.Cursor, late, 1)[0]
		if !decided[signalbox.RunID(newest)] {
			p.add(signalbox.ScheduleRun{
				Nominal: newest, Trigger: signalbox.TriggerMissed, Status: signalbox.SkippedMissed,
				Missed: due.count(row.Cursor, newest), Error: "its instant passed while no scheduler ran, or its clock stood elsewhere",
			}, now)
		}
		return 0
	}
	left := due.count(row.Cursor, fire[0])
	for _, t := range fire {
		p.add(signalbox.ScheduleRun{Nominal: t, Trigger: signalbox.TriggerMissed, Status: signalbox.RunFiring, Missed: left}, now)
		left = 0
	}
	return 0
}

// add adds a run. Runs of one plan are a millisecond apart, which keeps their order.
func (p *plan) add(r signalbox.ScheduleRun, now time.Time) {
	r.ID = signalbox.RunID(r.Nominal)
	r.FiredAt = now.Add(time.Duration(len(p.runs)) * time.Millisecond)
	if !r.Status.Open() {
		r.EndedAt = r.FiredAt
	}
	p.runs = append(p.runs, r)
}

// apply applies the plan to the row.
func (p *plan) apply(row *signalbox.Schedule) {
	row.Cursor = latest(row.Cursor, p.cursor)
	if len(p.runs) == 0 {
		return
	}
	last := &p.runs[len(p.runs)-1]
	row.LastRun, row.LastStatus, row.LastError = last.FiredAt, last.Status, last.Error
}

func undecided(list []time.Time, decided map[string]bool) []time.Time {
	var left []time.Time
	for _, t := range list {
		if !decided[signalbox.RunID(t)] {
			left = append(left, t)
		}
	}
	return left
}

func latest(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

const idPrefix = "sched-"

// configID is the ID of a configured job.
func configID(name string) string { return idPrefix + name }

// byConfig is the actor of changes by Sync.
const byConfig = "the configuration"

// Sync makes the configured schedules equal to jobs: it adds, edits and removes. If a job is
// invalid, nothing is changed; a job whose name an API schedule has is skipped and reported. An
// agent need not exist yet.
//
// Enabled follows the file if it changes there while the scheduler runs, and if it is false at
// the start. Otherwise a value set through the API is kept, also over a restart.
func (s *Scheduler) Sync(ctx context.Context, jobs []signalbox.Schedule) error {
	wanted := make(map[string]signalbox.Schedule, len(jobs))
	for _, j := range jobs {
		j.ID, j.Source = configID(j.Name), signalbox.ScheduleFromConfig
		j, err := s.accept(j)
		if err != nil {
			return jobError(j.Name, err)
		}
		if _, twice := wanted[j.ID]; twice {
			return signalbox.Invalid("name", "two jobs are named %s: give each a name of its own", j.Name)
		}
		wanted[j.ID] = j
	}
	rows, err := s.store.Schedules(ctx)
	if err != nil {
		return err
	}
	known := make(map[string]bool, len(rows))
	for i := range rows {
		known[rows[i].ID] = true
		if _, stays := wanted[rows[i].ID]; !stays && rows[i].Source == signalbox.ScheduleFromConfig { // removed first: a new job may take the name
			if err := s.remove(ctx, &rows[i], byConfig); err != nil && signalbox.CodeOf(err) != signalbox.CodeNotFound {
				return err
			}
			s.mu.Lock()
			delete(s.files, rows[i].ID)
			s.mu.Unlock()
		}
	}
	var failed []error
	for _, j := range jobs {
		if err := s.syncJob(ctx, wanted[configID(j.Name)], known[configID(j.Name)]); err != nil {
			failed = append(failed, jobError(j.Name, err))
		}
	}
	return errors.Join(failed...)
}

func jobError(name string, err error) error {
	if e, ok := errors.AsType[*signalbox.Error](err); ok {
		return &signalbox.Error{Code: e.Code, Field: e.Field, Message: "job " + clip(name) + ": " + e.Message, Err: e.Err}
	}
	return err
}

// syncJob stores a job as configured.
func (s *Scheduler) syncJob(ctx context.Context, job signalbox.Schedule, known bool) error {
	s.mu.Lock()
	was, seen := s.files[job.ID]
	s.mu.Unlock()
	err := error(nil)
	if !known {
		_, err = s.insert(ctx, job, byConfig)
		if errors.Is(err, ErrStale) { // another director syncs the same file
			known = true
		}
	}
	if known {
		var row signalbox.Schedule
		row, err = s.alter(ctx, job.ID, byConfig, func(now signalbox.Schedule) (signalbox.Schedule, string, error) {
			if now.Source != signalbox.ScheduleFromConfig {
				return now, "", signalbox.Errorf(signalbox.CodeConflict, "a schedule that was made through the API has the id %s: give the job another name", now.ID)
			}
			after := changeable(now, job)
			after.Owner, after.OwnerEmail = job.Owner, job.OwnerEmail
			if seen && job.Enabled == was || !seen && job.Enabled {
				after.Enabled = now.Enabled
			}
			if reflect.DeepEqual(now, after) {
				return now, "", nil
			}
			return after, "edited", nil
		})
		if err == nil && job.Enabled && !row.Enabled {
			s.log.Warn("a job is enabled in the configuration, but was disabled since: enable it with signalbox schedules enable", "job", job.Name)
		}
	}
	if err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.files == nil {
		s.files = map[string]bool{}
	}
	s.files[job.ID] = job.Enabled
	return nil
}
