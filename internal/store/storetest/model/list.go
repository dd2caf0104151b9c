package model

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/internal/store"
)

// Waiting lists pending tasks in the order in which they will be claimed.
func (s *Store) Waiting(ctx context.Context, queue string, after store.Cursor, limit int) ([]signalbox.Task, error) {
	if err := s.lock(ctx); err != nil {
		return nil, err
	}
	defer s.mu.Unlock()
	l := &s.pending
	if queue != "" {
		l = s.waiting.get(queue)
	}
	spots := l.spots
	if after != (store.Cursor{}) {
		spots = l.after(after.OrderKey, after.Place)
	}
	return tasks(spots, limit), nil
}

// Parked lists the tasks that are parked at a gate, longest parked first; at the same time by gate and id.
func (s *Store) Parked(ctx context.Context, kind signalbox.GateKind, name string) ([]signalbox.Task, error) {
	if err := s.lock(ctx); err != nil {
		return nil, err
	}
	defer s.mu.Unlock()
	return s.parkedAt(kind, name), nil
}

func (s *Store) parkedAt(kind signalbox.GateKind, name string) (list []signalbox.Task) {
	for _, p := range s.pending.spots {
		if t := p.row.task; t.State == signalbox.Parked && (kind == "" || (t.Parking.Kind == kind && t.Parking.Name == name)) {
			list = append(list, t)
		}
	}
	slices.SortFunc(list, func(a, b signalbox.Task) int {
		p, q := a.Parking, b.Parking
		return cmp.Or(cmp.Compare(p.At.UnixMilli(), q.At.UnixMilli()), strings.Compare(string(p.Kind)+"/"+p.Name+"/"+a.ID, string(q.Kind)+"/"+q.Name+"/"+b.ID))
	})
	return list
}

// Landings lists the ended tasks whose landing is open, by the time of the request, then id.
func (s *Store) Landings(ctx context.Context) (list []signalbox.Task, err error) {
	if err := s.lock(ctx); err != nil {
		return nil, err
	}
	defer s.mu.Unlock()
	for _, p := range s.ended.spots {
		if p.row.task.Landing.Open() {
			list = append(list, p.row.task)
		}
	}
	slices.SortFunc(list, func(a, b signalbox.Task) int {
		return cmp.Or(cmp.Compare(a.Landing.At.UnixMilli(), b.Landing.At.UnixMilli()), strings.Compare(a.ID, b.ID))
	})
	return list, nil
}

// InFlight lists the tasks that hold a slot, in the order of their claims.
func (s *Store) InFlight(ctx context.Context) ([]signalbox.Task, error) {
	if err := s.lock(ctx); err != nil {
		return nil, err
	}
	defer s.mu.Unlock()
	return tasks(s.inFlight.spots, len(s.inFlight.spots)), nil
}

// Overdue lists pending tasks that have waited too long, most overdue first.
func (s *Store) Overdue(ctx context.Context, now time.Time, limit int) ([]signalbox.Task, error) {
	if err := s.lock(ctx); err != nil {
		return nil, err
	}
	defer s.mu.Unlock()
	passed := s.bounded.rank(now.UnixMilli()+1, 0)
	return tasks(s.bounded.spots[:passed], limit), nil
}

// SessionTasks lists pending and in-flight tasks of a session by order.
func (s *Store) SessionTasks(ctx context.Context, id string, limit int) ([]signalbox.Task, error) {
	if err := s.lock(ctx); err != nil {
		return nil, err
	}
	defer s.mu.Unlock()
	k := s.turns[id]
	if k == nil {
		return nil, nil
	}
	var both line
	for _, l := range []*line{&k.pending, &k.inFlight} {
		for _, p := range l.spots {
			both.add(p.key, p.tie, p.row)
		}
	}
	return tasks(both.spots, limit), nil
}

func tasks(spots []spot, limit int) []signalbox.Task {
	var list []signalbox.Task
	for _, p := range spots[:max(0, min(limit, len(spots)))] {
		list = append(list, p.row.task)
	}
	return list
}

// historyRows bounds the rows that History reads for one page.
const historyRows = 10_000

// History lists ended tasks, newest end first.
func (s *Store) History(ctx context.Context, q store.HistoryQuery) (store.HistoryPage, error) {
	if err := s.lock(ctx); err != nil {
		return store.HistoryPage{}, err
	}
	defer s.mu.Unlock()
	if q.Limit < 1 || q.Limit > 1000 {
		return store.HistoryPage{}, signalbox.Invalid("limit", "the limit of a page is 1 to 1000, not %d", q.Limit)
	}
	key, seq, err := store.ParseCursor(q.Before)
	if err != nil {
		return store.HistoryPage{}, err
	}
	var page store.HistoryPage
	older := s.ended.rank(key, seq)
	lowest := max(0, older-historyRows)
	for n := older - 1; n >= lowest; n-- {
		t := &s.ended.spots[n].row.task
		if q.Matches(t) {
			page.Tasks = append(page.Tasks, *t)
		}
		if n > 0 && (len(page.Tasks) == q.Limit || n == lowest) {
			page.Next = fmt.Sprintf("%d-%d", t.EndedAt.UnixMilli(), t.Seq)
			break
		}
	}
	return page, nil
}
