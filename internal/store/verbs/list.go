package verbs

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/internal/store"
)

// tasks reads a list of tasks, which is empty if limit is below 1.
func (s *Store) tasks(ctx context.Context, limit int, read func(context.Context) ([]signalbox.Task, error)) ([]signalbox.Task, error) {
	if limit <= 0 {
		return nil, s.ready(ctx)
	}
	return readFrom(ctx, s, read)
}

// Waiting lists pending tasks in the order in which they will be claimed.
func (s *Store) Waiting(ctx context.Context, queue string, after store.Cursor, limit int) ([]signalbox.Task, error) {
	return s.tasks(ctx, limit, func(ctx context.Context) ([]signalbox.Task, error) {
		return s.backend.Waiting(ctx, queue, after, limit)
	})
}

// InFlight lists the tasks that hold a slot, in the order of their claims.
func (s *Store) InFlight(ctx context.Context) ([]signalbox.Task, error) {
	return s.tasks(ctx, 1, s.backend.InFlight)
}

// Overdue lists pending tasks that have waited too long, most overdue first.
func (s *Store) Overdue(ctx context.Context, now time.Time, limit int) ([]signalbox.Task, error) {
	return s.tasks(ctx, limit, func(ctx context.Context) ([]signalbox.Task, error) { return s.backend.Overdue(ctx, now, limit) })
}

// SessionTasks lists pending and in-flight tasks of a session by order.
func (s *Store) SessionTasks(ctx context.Context, id string, limit int) ([]signalbox.Task, error) {
	if id == "" {
		return nil, s.ready(ctx)
	}
	return s.tasks(ctx, limit, func(ctx context.Context) ([]signalbox.Task, error) { return s.backend.SessionTasks(ctx, id, limit) })
}

// Children lists the tasks that the execution of a task called, by Seq.
func (s *Store) Children(ctx context.Context, id string, limit int) ([]signalbox.Task, error) {
	if id == "" {
		return nil, s.ready(ctx)
	}
	return s.tasks(ctx, limit, func(ctx context.Context) ([]signalbox.Task, error) { return s.backend.Children(ctx, id, limit) })
}

const (
	// historyRows bounds the rows that History reads for one page, historyPage those it
	// reads at once.
	historyRows = 10_000
	historyPage = 1000
)

// History lists ended tasks, newest end first.
func (s *Store) History(ctx context.Context, q store.HistoryQuery) (page store.HistoryPage, err error) {
	if err := s.ready(ctx); err != nil {
		return page, err
	}
	if q.Limit < 1 || q.Limit > 1000 {
		return page, signalbox.Invalid("limit", "the limit of a page is 1 to 1000, not %d", q.Limit)
	}
	ended, seq, err := store.ParseCursor(q.Before)
	if err != nil {
		return page, err
	}
	at := store.EndedCursor{EndedMS: ended, Seq: seq}
	for looked, limit := 0, q.Limit+1; ; limit = historyPage {
		rows, err := s.tasks(ctx, limit, func(ctx context.Context) ([]signalbox.Task, error) { return s.backend.Ended(ctx, at, limit) })
		if err != nil {
			return store.HistoryPage{}, err
		}
		for i := range rows {
			if len(page.Tasks) == q.Limit || looked == historyRows {
				page.Next = fmt.Sprintf("%d-%d", at.EndedMS, at.Seq)
				return page, nil
			}
			looked++
			t := &rows[i]
			at = store.EndedCursorOf(t)
			if q.Matches(t) {
				page.Tasks = append(page.Tasks, *t)
			}
		}
		if len(rows) < limit {
			return page, nil
		}
	}
}

// Journal returns entries with a Seq above after, oldest first.
func (s *Store) Journal(ctx context.Context, after int64, limit int) ([]signalbox.Entry, error) {
	rows, err := s.entries(ctx, after, limit)
	if err != nil || len(rows) == 0 {
		return nil, err
	}
	list := make([]signalbox.Entry, 0, len(rows))
	for i := range rows {
		list = append(list, rows[i].Entry)
	}
	return list, nil
}

func (s *Store) entries(ctx context.Context, after int64, limit int) ([]Entry, error) {
	if limit <= 0 {
		return nil, s.ready(ctx)
	}
	return readFrom(ctx, s, func(ctx context.Context) ([]Entry, error) { return s.backend.Entries(ctx, after, limit) })
}

// JournalRange returns the oldest and newest Seq that Journal can return.
func (s *Store) JournalRange(ctx context.Context) (oldest, newest int64, err error) {
	type span struct{ oldest, newest int64 }
	r, err := readFrom(ctx, s, func(ctx context.Context) (r span, err error) {
		r.oldest, r.newest, err = s.backend.EntryRange(ctx)
		return r, err
	})
	return r.oldest, r.newest, err
}

// Landings lists the ended tasks whose landing is open.
func (s *Store) Landings(ctx context.Context) ([]signalbox.Task, error) {
	docs, err := s.page(ctx, Page{Kind: kindLanding, BySort: true})
	if err != nil || len(docs) == 0 {
		return nil, err
	}
	ids := make([]string, len(docs))
	for i := range docs {
		ids[i] = docs[i].ID
	}
	tasks, err := s.Tasks(ctx, ids)
	return slices.DeleteFunc(tasks, func(t signalbox.Task) bool { return !t.Landing.Open() }), err // it may have changed since
}
