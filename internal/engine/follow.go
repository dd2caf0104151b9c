package engine

import (
	"context"
	"slices"
	"time"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/internal/store"
)

// Several directors over one store hear of each other's changes from the
// journal: Follow reads what others wrote there, and tells observers and
// waiters as if it had been done here, marked Foreign.

const (
	// followEvery is how often the journal is looked at though there was no
	// sign; signs may be missed.
	followEvery = time.Second
	// followRetry is the pause after a look that failed.
	followRetry = 200 * time.Millisecond
	// followPage is how many entries are read at a time, followBehind how many
	// may lie before us: where there are more they are left out, and everyone
	// looks for himself.
	followPage   = 1000
	followBehind = 20_000
)

// Following says whose entries are read as a whole.
type Following struct {
	// Rows reports whether somebody here needs the row of the task that an
	// entry is about: then it is read. Otherwise observers get what the entry
	// says (Applied.Partial). nil: nobody does.
	Rows func(e *signalbox.Entry) bool
	// Sign is told of each look, as of a sign that something may have changed.
	// It must not wait. nil: nobody is.
	Sign func()
	// Behind is told that entries were left out, or lost with what the server had
	// acknowledged: whoever goes by them must look at the rows. nil: nobody does.
	Behind func()
}

// Follow tells observers and waiters of the changes that others make in the
// store, until ctx ends. What was there before it began is not told.
func (e *Engine) Follow(ctx context.Context, s store.Shared, f Following) error {
	generation := s.Generation()
	_, after, err := s.JournalRange(ctx)
	if err != nil {
		return err
	}
	e.following.Store(true)
	go e.follow(ctx, s, f, after, generation)
	return nil
}

func (e *Engine) follow(ctx context.Context, s store.Shared, f Following, after, generation int64) {
	timer := time.NewTimer(followEvery)
	defer timer.Stop()
	for {
		if f.Sign != nil {
			f.Sign()
		}
		if now := s.Generation(); now != generation { // entries may have got numbers that we are past
			generation = now
			e.lookAnew(&f)
		}
		next, err := e.followOn(ctx, s, &f, after)
		after = next
		wait := followEvery
		if err != nil {
			wait = followRetry
			if ctx.Err() == nil {
				e.log.Error("changes of other directors not read, trying again", "error", err)
			}
		}
		timer.Reset(wait)
		signs := s.Changed()
		if err != nil {
			signs = nil // not at once
		}
		select {
		case <-ctx.Done():
			return
		case <-signs:
		case <-timer.C:
		}
	}
}

// followOn tells of all that was written since after, and returns up to where
// that is.
func (e *Engine) followOn(ctx context.Context, s store.Shared, f *Following, after int64) (int64, error) {
	for ctx.Err() == nil {
		entries, through, err := s.Others(ctx, after, followPage)
		if err != nil {
			return after, err
		}
		if through-after >= followPage {
			_, newest, err := s.JournalRange(ctx)
			if err == nil && newest-through > followBehind {
				e.leaveOut(f, newest-after)
				after = newest
				continue
			}
		}
		rows, err := rowsFor(ctx, s, f, entries)
		if err != nil {
			return after, err
		}
		for i := range entries {
			e.foreign(&entries[i], rows)
		}
		if len(entries) > 0 {
			e.hub.noted()
		}
		if through-after < followPage { // that was all: of more there will be a sign
			return through, nil
		}
		after = through
	}
	return after, ctx.Err()
}

// rowsFor reads the rows that are needed for a page of entries, all at once: one
// by one they were most of what it costs a director that others write.
func rowsFor(ctx context.Context, s store.Shared, f *Following, entries []signalbox.Entry) (map[string]signalbox.Task, error) {
	rows := map[string]signalbox.Task{}
	if f.Rows == nil {
		return rows, nil
	}
	var ids []string
	for i := range entries {
		if e := &entries[i]; e.QueueID != "" && !ofNoTask(e) && f.Rows(e) {
			ids = append(ids, e.QueueID)
		}
	}
	slices.Sort(ids)
	there, err := s.Tasks(ctx, slices.Compact(ids))
	for _, t := range there {
		rows[t.ID] = t
	}
	return rows, err
}

// leaveOut gives up on telling of each change, and has everyone look.
func (e *Engine) leaveOut(f *Following, entries int64) {
	e.log.Warn("too many changes of other directors to tell of each: all is looked at anew", "entries", entries)
	e.lookAnew(f)
}

// lookAnew has everyone look at the rows.
func (e *Engine) lookAnew(f *Following) {
	e.hub.pokeAll()
	if f.Behind != nil {
		f.Behind()
	}
}

// foreign tells of one entry of another director.
func (e *Engine) foreign(entry *signalbox.Entry, rows map[string]signalbox.Task) {
	if ofNoTask(entry) {
		return
	}
	a := Applied{Kind: entry.Kind, By: entry.By, From: before(entry), Foreign: true, Partial: true, Task: entryTask(entry)}
	// Where the row is not as the entry says it has gone on, of which another
	// entry tells.
	if t, known := rows[entry.QueueID]; known && t.State == entry.State && t.Fence == entry.Fence {
		a.Task, a.Partial = t, false
	}
	if a.Kind == signalbox.EventFinish && a.Task.State == signalbox.Completed {
		e.runs.forget(a.Task.Agent)
	}
	e.hub.publish(&a)
}

// ofNoTask reports whether an entry is one of those that are told to nobody: who
// goes by them reads the journal.
func ofNoTask(entry *signalbox.Entry) bool {
	switch entry.Kind {
	case signalbox.EventPaused, signalbox.EventSession, signalbox.EventScheduleChanged, signalbox.EventScheduleFired, signalbox.EventRestored:
		return true
	}
	return false
}

// entryTask is what an entry says of its task; of an agent it is about, its
// name and what is said of it.
func entryTask(e *signalbox.Entry) signalbox.Task {
	t := signalbox.Task{
		ID: e.QueueID, State: e.State, Reason: e.Reason, Message: e.Message, Queue: e.Queue, Agent: e.Agent, Fence: e.Fence,
		Attempts: e.Attempts, Source: e.Source, Owner: e.Owner, CancelRequested: e.Kind == signalbox.EventCancel,
	}
	if t.Queue == signalbox.QueueCommands || t.Queue == signalbox.QueueCalls {
		t.Mode = signalbox.ModeTool
	}
	if t.State.Terminal() {
		t.EndedAt = e.At
	}
	return t
}

// before is the state that a task came from, as far as the kind of the entry
// tells.
func before(e *signalbox.Entry) signalbox.State {
	switch e.Kind {
	case signalbox.EventClaim, signalbox.EventWaitTimeout, signalbox.EventMove, signalbox.EventUndeliverable:
		return signalbox.Pending
	case signalbox.EventAccept, signalbox.EventBusy, signalbox.EventRefuse, signalbox.EventUnsent, signalbox.EventReject:
		return signalbox.Dispatching
	case signalbox.EventFinish, signalbox.EventLost, signalbox.EventStop, signalbox.EventRelease:
		return signalbox.Working
	case signalbox.EventCancel:
		switch {
		case e.State.InFlight():
			return e.State
		case e.Fence != 0:
			return signalbox.Working
		}
		return signalbox.Pending
	}
	return ""
}
