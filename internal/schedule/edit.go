package schedule

import (
	"context"
	"crypto/rand"
	"encoding/base32"
	"errors"
	"fmt"
	"time"

	"github.com/signalbox-ai/signalbox"
)

var idEncoding = base32.NewEncoding("0123456789abcdefghjkmnpqrstvwxyz").WithPadding(base32.NoPadding)

// newID makes an id with 80 random bits.
func newID(prefix string) (string, error) {
	var b [10]byte
	if _, err := rand.Read(b[:]); err != nil {
		return "", fmt.Errorf("read random bytes for an id: %w", err)
	}
	return prefix + idEncoding.EncodeToString(b[:]), nil
}

// Add stores a new schedule of the API. Its id, times and outcomes are made
// here; what passed before is no missed instant.
//
// Errors: CodeValidation and CodeTooLarge with the field, those of
// Options.Check, CodeConflict where the name is taken.
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

// accept fills in defaults and refuses what cannot be.
func (s *Scheduler) accept(row signalbox.Schedule) (signalbox.Schedule, error) {
	row = withDefaults(row)
	return row, Validate(row)
}

func (s *Scheduler) insert(ctx context.Context, row signalbox.Schedule, by string) (signalbox.Schedule, error) {
	now := s.now()
	row.Rev, row.CreatedAt, row.UpdatedAt, row.Cursor = 0, now, now, now
	row.LastRun, row.LastStatus, row.LastQueueID, row.LastError = time.Time{}, "", "", ""
	stored, err := s.book.Put(ctx, row, nil, changed(&row, "added", by, s))
	if err != nil {
		return row, err
	}
	s.adopt(stored)
	return stored, nil
}

func changed(row *signalbox.Schedule, what, by string, s *Scheduler) signalbox.Entry {
	return signalbox.Entry{
		At: s.now(), Kind: signalbox.EventScheduleChanged, Schedule: row.Name, Message: what, By: by, Owner: row.Owner, Agent: row.Agent,
	}
}

// Edit stores what a person can change of a schedule, by its ID. Its owner,
// source, times and outcomes stay.
//
// Errors: those of Add; CodeNotFound; CodeConflict for one of the configuration.
func (s *Scheduler) Edit(ctx context.Context, row signalbox.Schedule, by string) (signalbox.Schedule, error) {
	after, err := s.accept(row)
	if err != nil {
		return row, err
	}
	return s.alter(ctx, row.ID, by, func(now signalbox.Schedule) (signalbox.Schedule, string, error) {
		if now.Source == signalbox.ScheduleFromConfig {
			return now, "", fromFile(&now, "edited")
		}
		edited := changeable(now, after)
		return edited, "edited", s.check(ctx, edited)
	})
}

func fromFile(row *signalbox.Schedule, what string) error {
	return signalbox.Errorf(signalbox.CodeConflict, "schedule %s stands in the configuration and cannot be %s here: change it in the file", row.Name, what)
}

// changeable is now with what a person can change as in after.
func changeable(now, after signalbox.Schedule) signalbox.Schedule {
	after.ID, after.Rev, after.Source, after.Owner, after.OwnerEmail = now.ID, now.Rev, now.Source, now.Owner, now.OwnerEmail
	after.CreatedAt, after.UpdatedAt, after.Cursor = now.CreatedAt, now.UpdatedAt, now.Cursor
	after.LastRun, after.LastStatus, after.LastQueueID, after.LastError = now.LastRun, now.LastStatus, now.LastQueueID, now.LastError
	return after
}

// alter changes a schedule as it is now: what a firing writes at the same time
// is not undone. told is "" where there is nothing to change.
func (s *Scheduler) alter(ctx context.Context, id, by string, change func(signalbox.Schedule) (after signalbox.Schedule, told string, err error)) (signalbox.Schedule, error) {
	for range maxTries {
		before, err := s.book.Schedule(ctx, id)
		if err != nil {
			return before, err
		}
		after, told, err := change(before)
		if err != nil || told == "" {
			return before, err
		}
		now := s.now()
		after.UpdatedAt = now
		if after.Cron != before.Cron || after.Timezone != before.Timezone || (after.Enabled && !before.Enabled) {
			after.Cursor = now
		}
		stored, err := s.book.Put(ctx, after, nil, changed(&after, told, by, s))
		if errors.Is(err, ErrStale) {
			continue
		}
		if err != nil {
			return before, err
		}
		s.adopt(stored)
		return stored, nil
	}
	return signalbox.Schedule{}, signalbox.Errorf(signalbox.CodeConflict, "schedule %s is changed by others all the time: try again", id)
}

// SetEnabled lets a schedule fire from now on, or no more. What it is already is
// no error, and changes nothing.
//
// Error: CodeNotFound.
func (s *Scheduler) SetEnabled(ctx context.Context, ref string, on bool, by string) (signalbox.Schedule, error) {
	row, err := s.Get(ctx, ref)
	if err != nil {
		return row, err
	}
	told := "disabled"
	if on {
		told = "enabled"
	}
	return s.alter(ctx, row.ID, by, func(now signalbox.Schedule) (signalbox.Schedule, string, error) {
		if now.Enabled == on {
			return now, "", nil
		}
		now.Enabled = on
		return now, told, nil
	})
}

// Remove forgets a schedule with its firings, those that are held among them.
// Its tasks stay.
//
// Errors: CodeNotFound; CodeConflict for one of the configuration.
func (s *Scheduler) Remove(ctx context.Context, ref, by string) error {
	row, err := s.Get(ctx, ref)
	if err != nil {
		return err
	}
	if row.Source == signalbox.ScheduleFromConfig {
		return fromFile(&row, "removed")
	}
	return s.remove(ctx, &row, by)
}

func (s *Scheduler) remove(ctx context.Context, row *signalbox.Schedule, by string) error {
	was, err := s.book.Delete(ctx, row.ID, changed(row, "removed", by, s))
	if err != nil {
		return err
	}
	s.leave(row.ID)
	if !was {
		return notFound(row.Name)
	}
	return nil
}
