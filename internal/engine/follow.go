package engine

import (
	"context"
	"slices"
	"time"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/internal/store"
)

// Directors that share a store learn of each other's changes from the journal: Follow reads
// the entries of others and notifies observers and waiters, marked Foreign.

const (
	// followInterval is how often the journal is read without a signal; signals may be
	// missed.
	followInterval = time.Second
	// followRetryDelay is the pause after a failed read.
	followRetryDelay = 200 * time.Millisecond
	// followPageSize is how many entries are read at a time. If more than followMaxLag are
	// unread, they are skipped, and everyone reads the rows instead.
	followPageSize = 1000
	followMaxLag   = 20_000
)

// FollowOptions says how entries of other directors are processed.
type FollowOptions struct {
	// NeedsRow reports whether an observer needs the row of the task that an entry is
	// about: then it is read. Otherwise observers get only what the entry says
	// (Applied.Partial). nil: no rows are read.
	NeedsRow func(e *signalbox.Entry) bool
	// OnPoll is called before each read of the journal. It must not block. May be nil.
	OnPoll func()
	// OnGap is called when entries were skipped, or were lost with data that the server had
	// acknowledged: observers must read the rows. May be nil.
	OnGap func()
}

// Follow notifies observers and waiters of changes by other directors until ctx ends,
// starting with the next change.
func (e *Engine) Follow(ctx context.Context, s store.Shared, f FollowOptions) error {
	generation := s.Generation()
	_, after, err := s.JournalRange(ctx)
	if err != nil {
		return err
	}
	e.following.Store(true)
	go e.follow(ctx, s, f, after, generation)
	return nil
}

func (e *Engine) follow(ctx context.Context, s store.Shared, f FollowOptions, after, generation int64) {
	timer := time.NewTimer(followInterval)
	defer timer.Stop()
	for {
		if f.OnPoll != nil {
			f.OnPoll()
		}
		if now := s.Generation(); now != generation { // new entries may reuse numbers that we have passed
			generation = now
			e.resync(&f)
		}
		next, err := e.readForeign(ctx, s, &f, after)
		after = next
		wait, changes := followInterval, s.Changed()
		if err != nil {
			wait, changes = followRetryDelay, nil
			if ctx.Err() == nil {
				e.log.Error("changes of other directors not read, trying again", "error", err)
			}
		}
		timer.Reset(wait)
		select {
		case <-ctx.Done():
			return
		case <-changes:
		case <-timer.C:
		}
	}
}

// readForeign publishes all entries after after, and returns the Seq up to which it read.
func (e *Engine) readForeign(ctx context.Context, s store.Shared, f *FollowOptions, after int64) (int64, error) {
	for ctx.Err() == nil {
		entries, through, err := s.Others(ctx, after, followPageSize)
		if err != nil {
			return after, err
		}
		if through-after >= followPageSize {
			_, newest, err := s.JournalRange(ctx)
			if err == nil && newest-through > followMaxLag {
				e.log.Warn("too many changes of other directors: the entries are skipped, and all rows are read again", "entries", newest-after)
				e.resync(f)
				after = newest
				continue
			}
		}
		rows, err := rowsFor(ctx, s, f, entries)
		if err != nil {
			return after, err
		}
		for i := range entries {
			e.publishForeign(&entries[i], rows)
		}
		if len(entries) > 0 {
			e.hub.journalGrew()
		}
		if through-after < followPageSize { // that was all; the next signal announces more
			return through, nil
		}
		after = through
	}
	return after, ctx.Err()
}

// rowsFor reads the rows needed for a page of entries in one call; single reads dominated
// the cost of following.
func rowsFor(ctx context.Context, s store.Shared, f *FollowOptions, entries []signalbox.Entry) (map[string]signalbox.Task, error) {
	rows := map[string]signalbox.Task{}
	if f.NeedsRow == nil {
		return rows, nil
	}
	var ids []string
	for i := range entries {
		if e := &entries[i]; e.QueueID != "" && !journalOnly(e) && f.NeedsRow(e) {
			ids = append(ids, e.QueueID)
		}
	}
	slices.Sort(ids)
	found, err := s.Tasks(ctx, slices.Compact(ids))
	for _, t := range found {
		rows[t.ID] = t
	}
	return rows, err
}

// resync has everyone read the rows.
func (e *Engine) resync(f *FollowOptions) {
	e.hub.notifyAll()
	if f.OnGap != nil {
		f.OnGap()
	}
}

// publishForeign publishes one entry of another director.
func (e *Engine) publishForeign(entry *signalbox.Entry, rows map[string]signalbox.Task) {
	if journalOnly(entry) {
		return
	}
	a := Applied{Kind: entry.Kind, By: entry.By, From: entry.Before(), Foreign: true, Partial: true, Task: entry.Partial()}
	// If the row differs, the task has moved on, and a later entry covers that.
	if t, known := rows[entry.QueueID]; known && t.State == entry.State && t.Fence == entry.Fence {
		a.Task, a.Partial = t, false
	}
	if a.Kind == signalbox.EventFinish && a.Task.State == signalbox.Completed {
		e.runs.Invalidate(a.Task.Agent)
	}
	e.hub.publish(&a)
}

// journalOnly reports whether an entry is not published; those interested read the journal.
func journalOnly(entry *signalbox.Entry) bool {
	switch entry.Kind {
	case signalbox.EventPaused, signalbox.EventSession, signalbox.EventScheduleChanged, signalbox.EventScheduleFired, signalbox.EventRestored:
		return true
	}
	return false
}
