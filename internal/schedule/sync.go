package schedule

import (
	"context"
	"errors"
	"reflect"

	"github.com/signalbox-ai/signalbox"
)

// idPrefix begins the ids of schedules.
const idPrefix = "sched-"

// configID is the id of a job of the configuration.
func configID(name string) string { return idPrefix + name }

// byConfig is who changes jobs that follow the configuration.
const byConfig = "the configuration"

// Sync makes the schedules of the configuration those of jobs: new ones are
// added, changed ones edited, those that are no longer there removed. If one
// of them is wrong, nothing is changed; one whose name a schedule of the API
// has is left out, and that is the error. An agent need not be known yet.
//
// Enabled is followed where the file changes it while the scheduler runs, and
// where it says false at the start. Otherwise what somebody set through the
// API stands: one who disabled a job wants it to stay so over a restart.
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
	rows, err := s.book.Schedules(ctx)
	if err != nil {
		return err
	}
	known := make(map[string]bool, len(rows))
	for i := range rows {
		known[rows[i].ID] = true
		if _, stays := wanted[rows[i].ID]; !stays && rows[i].Source == signalbox.ScheduleFromConfig { // first, for their names may be wanted
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
		if err := s.follow(ctx, wanted[configID(j.Name)], known[configID(j.Name)]); err != nil {
			failed = append(failed, jobError(j.Name, err))
		}
	}
	return errors.Join(failed...)
}

func jobError(name string, err error) error {
	var e *signalbox.Error
	if errors.As(err, &e) {
		return &signalbox.Error{Code: e.Code, Field: e.Field, Message: "job " + clip(name) + ": " + e.Message, Err: e.Err}
	}
	return err
}

// follow stores a job as the file has it.
func (s *Scheduler) follow(ctx context.Context, job signalbox.Schedule, known bool) error {
	s.mu.Lock()
	was, seen := s.files[job.ID]
	s.mu.Unlock()
	err := error(nil)
	if !known {
		_, err = s.insert(ctx, job, byConfig)
		if errors.Is(err, ErrStale) { // another director follows the same file
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
