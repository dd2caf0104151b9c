package schedule

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/base32"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/internal/cron"
)

var idEncoding = base32.NewEncoding("0123456789abcdefghjkmnpqrstvwxyz").WithPadding(base32.NoPadding)

// newID returns an id with 80 random bits.
func newID(prefix string) (string, error) {
	var b [10]byte
	if _, err := rand.Read(b[:]); err != nil {
		return "", fmt.Errorf("read random bytes for an id: %w", err)
	}
	return prefix + idEncoding.EncodeToString(b[:]), nil
}

// Add stores a new schedule from the API, with a new ID. Instants before now are not missed.
//
// Errors: CodeValidation and CodeTooLarge with the field, those of Options.Check, CodeConflict
// if the name is taken.
func (s *Scheduler) Add(ctx context.Context, row signalbox.Schedule, by string) (signalbox.Schedule, error) {
	id, err := newID(idPrefix)
	if err != nil {
		return row, err
	}
	row.ID, row.Source = id, signalbox.ScheduleFromAPI
	if row, err = s.accept(row); err != nil {
		return row, err
	}
	if err := s.check(ctx, row); err != nil {
		return row, err
	}
	return s.insert(ctx, row, by)
}

func (s *Scheduler) check(ctx context.Context, row signalbox.Schedule) error {
	if s.opts.Check == nil {
		return nil
	}
	return s.opts.Check(ctx, row)
}

// accept applies defaults and validates.
func (s *Scheduler) accept(row signalbox.Schedule) (signalbox.Schedule, error) {
	row = withDefaults(row)
	return row, Validate(row)
}

func (s *Scheduler) insert(ctx context.Context, row signalbox.Schedule, by string) (signalbox.Schedule, error) {
	now := s.now()
	row.Rev, row.CreatedAt, row.UpdatedAt, row.Cursor = 0, now, now, now
	row.LastRun, row.LastStatus, row.LastQueueID, row.LastError = time.Time{}, "", "", ""
	stored, err := s.store.Put(ctx, row, nil, changedEntry(&row, "added", by, s))
	if err != nil {
		return row, err
	}
	s.applyStored(stored)
	return stored, nil
}

func changedEntry(row *signalbox.Schedule, what, by string, s *Scheduler) signalbox.Entry {
	return signalbox.Entry{
		At: s.now(), Kind: signalbox.EventScheduleChanged, Schedule: row.Name, Message: what, By: by, Owner: row.Owner, Agent: row.Agent,
	}
}

// Edit replaces the fields of a schedule that users can change, by its ID.
//
// Errors: those of Add; CodeNotFound; CodeConflict for a configured job.
func (s *Scheduler) Edit(ctx context.Context, row signalbox.Schedule, by string) (signalbox.Schedule, error) {
	after, err := s.accept(row)
	if err != nil {
		return row, err
	}
	return s.alter(ctx, row.ID, by, func(now signalbox.Schedule) (signalbox.Schedule, string, error) {
		if now.Source == signalbox.ScheduleFromConfig {
			return now, "", errFromConfig(&now, "edited")
		}
		edited := changeable(now, after)
		return edited, "edited", s.check(ctx, edited)
	})
}

func errFromConfig(row *signalbox.Schedule, what string) error {
	return signalbox.Errorf(signalbox.CodeConflict, "schedule %s is defined in the configuration and cannot be %s here: change it in the file", row.Name, what)
}

// changeable returns after with the fields of now that users cannot change.
func changeable(now, after signalbox.Schedule) signalbox.Schedule {
	after.ID, after.Rev, after.Source, after.Owner, after.OwnerEmail = now.ID, now.Rev, now.Source, now.Owner, now.OwnerEmail
	after.CreatedAt, after.UpdatedAt, after.Cursor = now.CreatedAt, now.UpdatedAt, now.Cursor
	after.LastRun, after.LastStatus, after.LastQueueID, after.LastError = now.LastRun, now.LastStatus, now.LastQueueID, now.LastError
	return after
}

// alter changes the current row, and retries if it changes meanwhile. action "" means no
// change.
func (s *Scheduler) alter(ctx context.Context, id, by string, change func(signalbox.Schedule) (after signalbox.Schedule, action string, err error)) (signalbox.Schedule, error) {
	for range maxRetries {
		before, err := s.store.Schedule(ctx, id)
		if err != nil {
			return before, err
		}
		after, action, err := change(before)
		if err != nil || action == "" {
			return before, err
		}
		now := s.now()
		after.UpdatedAt = now
		if after.Cron != before.Cron || after.Timezone != before.Timezone || (after.Enabled && !before.Enabled) {
			after.Cursor = now
		}
		stored, err := s.store.Put(ctx, after, nil, changedEntry(&after, action, by, s))
		if errors.Is(err, ErrStale) {
			continue
		}
		if err != nil {
			return before, err
		}
		s.applyStored(stored)
		return stored, nil
	}
	return signalbox.Schedule{}, signalbox.Errorf(signalbox.CodeConflict, "schedule %s keeps being changed by others: try again", id)
}

// SetEnabled enables or disables a schedule.
//
// Error: CodeNotFound.
func (s *Scheduler) SetEnabled(ctx context.Context, ref string, on bool, by string) (signalbox.Schedule, error) {
	row, err := s.Get(ctx, ref)
	if err != nil {
		return row, err
	}
	action := "disabled"
	if on {
		action = "enabled"
	}
	return s.alter(ctx, row.ID, by, func(now signalbox.Schedule) (signalbox.Schedule, string, error) {
		if now.Enabled == on {
			return now, "", nil
		}
		now.Enabled = on
		return now, action, nil
	})
}

// Remove deletes a schedule with its firings, also held ones. Its tasks remain.
//
// Errors: CodeNotFound; CodeConflict for a configured job.
func (s *Scheduler) Remove(ctx context.Context, ref, by string) error {
	row, err := s.Get(ctx, ref)
	if err != nil {
		return err
	}
	if row.Source == signalbox.ScheduleFromConfig {
		return errFromConfig(&row, "removed")
	}
	return s.remove(ctx, &row, by)
}

func (s *Scheduler) remove(ctx context.Context, row *signalbox.Schedule, by string) error {
	was, err := s.store.Delete(ctx, row.ID, changedEntry(row, "removed", by, s))
	if err != nil {
		return err
	}
	s.forget(row.ID)
	if !was {
		return notFound(row.Name)
	}
	return nil
}

// Limits of a schedule's fields; its task has the limits of any task.
const (
	MaxDescriptionBytes = 4096
	MinMissedWindow     = time.Minute
	MaxMissedWindow     = 366 * 24 * time.Hour
)

func withDefaults(s signalbox.Schedule) signalbox.Schedule {
	s.Overlap = cmp.Or(s.Overlap, signalbox.OverlapQueue)
	s.Missed = cmp.Or(s.Missed, signalbox.MissedOnce)
	s.MissedWindow = cmp.Or(s.MissedWindow, signalbox.DefaultMissedWindow)
	s.OnFull = cmp.Or(s.OnFull, signalbox.FullSkip)
	s.Cron = strings.Join(strings.Fields(s.Cron), " ")
	return s
}

// Validate validates a schedule. Errors name the API field. Empty choices mean the default.
func Validate(s signalbox.Schedule) error {
	s = withDefaults(s)
	for _, check := range []func(*signalbox.Schedule) error{checkName, checkTimes, checkPrompt, checkWords, checkRoute, checkChoices, checkDelivery} {
		if err := check(&s); err != nil {
			return err
		}
	}
	return nil
}

func checkName(s *signalbox.Schedule) error {
	switch {
	case s.Name == "":
		return signalbox.Invalid("name", "name is required: %s", signalbox.NameRule)
	case !signalbox.ValidName(s.Name):
		return signalbox.CheckName("name", "the name of a schedule", s.Name)
	case len(s.Name) == len(idPrefix)+16 && strings.HasPrefix(s.Name, idPrefix):
		return signalbox.Invalid("name", "%q looks like the id of a schedule: choose a name that does not", s.Name)
	case len(s.Description) > MaxDescriptionBytes || !readable(s.Description):
		return signalbox.Invalid("description", "description must be text of at most %d bytes", MaxDescriptionBytes)
	}
	return nil
}

func checkTimes(s *signalbox.Schedule) error {
	var refused *cron.Error
	if _, err := cron.Parse(s.Cron); errors.As(err, &refused) {
		return signalbox.Invalid("cron_expression", "%s", refused.Text)
	}
	if _, err := cron.Zone(s.Timezone); errors.As(err, &refused) {
		return signalbox.Invalid("timezone", "%s", refused.Text)
	}
	return nil
}

func checkPrompt(s *signalbox.Schedule) error { return signalbox.CheckPrompt(s.Prompt) }

func checkWords(s *signalbox.Schedule) error {
	return signalbox.CheckWords(s.Model, s.Tier, s.Project)
}

func checkRoute(s *signalbox.Schedule) error {
	if kind, own := signalbox.ExecutorKind(s.Agent); own {
		return signalbox.Invalid("agent", "agent %s runs %s of the director itself and takes no prompts: name another agent", clip(s.Agent), kind)
	}
	return signalbox.CheckTarget(s.Agent, s.Kind, s.SessionID)
}

func checkDelivery(s *signalbox.Schedule) error {
	if err := s.Checking.Validate(); err != nil || s.Landing == nil {
		return err
	}
	return s.Landing.Validate("land")
}

func checkChoices(s *signalbox.Schedule) error {
	err := cmp.Or(
		signalbox.CheckRange("priority", s.Priority, signalbox.MinPriority, signalbox.MaxPriority),
		signalbox.CheckRange("timeout_seconds", s.TimeoutSeconds, 0, signalbox.MaxTimeoutSeconds),
		signalbox.CheckChoice("on_lost", s.OnLost, signalbox.LostFail, signalbox.LostRequeue),
	)
	switch {
	case err != nil:
		return err
	case !slices.Contains(signalbox.Overlaps(), s.Overlap):
		return signalbox.Invalid("overlap", "overlap must be one of %v, not %q", signalbox.Overlaps(), clip(string(s.Overlap)))
	case !slices.Contains(signalbox.MissedPolicies(), s.Missed):
		return signalbox.Invalid("missed", "missed must be one of %v, not %q", signalbox.MissedPolicies(), clip(string(s.Missed)))
	case s.MissedWindow < MinMissedWindow || s.MissedWindow > MaxMissedWindow:
		return signalbox.Invalid("missed_window_seconds", "missed_window_seconds must be %d to %d, not %d",
			int64(MinMissedWindow.Seconds()), int64(MaxMissedWindow.Seconds()), int64(s.MissedWindow.Seconds()))
	case !slices.Contains(signalbox.OnFulls(), s.OnFull):
		return signalbox.Invalid("on_full", "on_full must be one of %v, not %q", signalbox.OnFulls(), clip(string(s.OnFull)))
	}
	return nil
}

// readable reports whether s is printable text, possibly of several lines.
func readable(s string) bool {
	return signalbox.Printable(strings.NewReplacer("\n", " ", "\t", " ", "\r", " ").Replace(s))
}

// clip shortens input quoted in an error.
func clip(s string) string {
	if r := []rune(s); len(r) > 80 {
		return string(r[:80]) + "..."
	}
	return s
}
