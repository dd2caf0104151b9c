package sqlite

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/internal/store"
)

// waiter is a pending task in the order of its queue.
type waiter struct {
	spot
	seq int64
}

// Waiting lists pending tasks in the order in which they will be taken.
func (s *Store) Waiting(ctx context.Context, queue string, after store.Cursor, limit int) (list []signalbox.Task, err error) {
	from := spot{after.OrderKey, after.Place}
	if after == (store.Cursor{}) {
		from = spot{math.MinInt64, math.MinInt64}
	}
	if limit <= 0 {
		return nil, s.ready(ctx)
	}
	err = s.read(ctx, func(c *conn) error {
		return c.snapshot(func() error {
			first, err := c.firstOf(queue, from, limit)
			if err != nil {
				return err
			}
			list, err = c.tasks(first)
			return err
		})
	})
	return list, err
}

// firstOf returns the first waiters behind from, of one queue or of all.
func (c *conn) firstOf(queue string, from spot, limit int) ([]waiter, error) {
	if queue != "" {
		return c.waiters(queue, from, limit, nil)
	}
	var list []waiter
	for {
		q := c.on(stQueueNext)
		q.exact(queue)
		more := q.next()
		if more {
			queue = q.textAt(0)
		}
		if err := q.end(); err != nil || !more {
			return list, err
		}
		var err error
		if list, err = c.waiters(queue, from, limit, list); err != nil {
			return nil, err
		}
		// Keep the best: there can be many queues.
		slices.SortFunc(list, func(a, b waiter) int { return compareSpots(a.spot, b.spot) })
		list = list[:min(limit, len(list))]
	}
}

func (c *conn) waiters(queue string, from spot, limit int, list []waiter) ([]waiter, error) {
	q := c.on(stWaiting)
	q.exact(queue).int(from.key).int(from.tie).int(int64(limit))
	for q.next() {
		list = append(list, waiter{spot{q.intAt(0), q.intAt(1)}, q.intAt(2)})
	}
	return list, q.end()
}

func (c *conn) tasks(waiters []waiter) ([]signalbox.Task, error) {
	var list []signalbox.Task
	for _, w := range waiters {
		q := c.on(stTaskBySeq)
		t, err := one(q.int(w.seq))
		if err != nil {
			return nil, err
		}
		if t != nil {
			list = append(list, *t)
		}
	}
	return list, nil
}

// InFlight lists the tasks that hold a slot, in the order of their claims.
func (s *Store) InFlight(ctx context.Context) (list []signalbox.Task, err error) {
	err = s.read(ctx, func(c *conn) error {
		return c.snapshot(func() (err error) {
			list, err = c.inFlight()
			return err
		})
	})
	return list, err
}

func (c *conn) inFlight() ([]signalbox.Task, error) {
	var held []waiter
	q := c.on(stSlotsHeld)
	for q.next() {
		held = append(held, waiter{seq: q.intAt(0)})
	}
	if err := q.end(); err != nil {
		return nil, err
	}
	list, err := c.tasks(held)
	list = slices.DeleteFunc(list, func(t signalbox.Task) bool { return !t.State.InFlight() })
	slices.SortFunc(list, func(a, b signalbox.Task) int { return cmp.Compare(a.Fence, b.Fence) })
	return list, err
}

// Slots lists the slots in use by agent and slot.
func (s *Store) Slots(ctx context.Context) (list []signalbox.Slot, err error) {
	err = s.read(ctx, func(c *conn) (err error) {
		list, err = c.slotRows()
		return err
	})
	return list, err
}

func (c *conn) slotRows() (list []signalbox.Slot, err error) {
	q := c.on(stSlotsAll)
	for q.next() {
		list = append(list, signalbox.Slot{
			Agent: q.textAt(0), Slot: int(q.intAt(1)), TaskID: q.textAt(2), Fence: q.intAt(3), Expires: q.timeAt(4),
			Withheld: q.boolAt(5),
		})
	}
	return list, q.end()
}

// Overdue lists pending tasks that have waited too long, the longest overdue
// first.
func (s *Store) Overdue(ctx context.Context, now time.Time, limit int) (list []signalbox.Task, err error) {
	err = s.read(ctx, func(c *conn) (err error) {
		q := c.on(stOverdue)
		list, err = all(q.int(now.UnixMilli()).int(int64(max(0, limit))))
		return err
	})
	return list, err
}

// SessionTasks lists pending and in-flight tasks of a session by order.
func (s *Store) SessionTasks(ctx context.Context, id string, limit int) (list []signalbox.Task, err error) {
	err = s.read(ctx, func(c *conn) (err error) {
		q := c.on(stSessionIn)
		list, err = all(q.exact(id).int(int64(max(0, limit))))
		return err
	})
	return list, err
}

// historyRows is how many rows History looks at for one page.
const historyRows = 10_000

// History lists ended tasks, newest end first.
func (s *Store) History(ctx context.Context, h store.HistoryQuery) (page store.HistoryPage, err error) {
	if err := s.ready(ctx); err != nil {
		return page, err
	}
	if h.Limit < 1 || h.Limit > 1000 {
		return page, signalbox.Invalid("limit", "the limit of a page is 1 to 1000, not %d", h.Limit)
	}
	key, tie, err := store.ParseCursor(h.Before)
	if err != nil {
		return page, err
	}
	from := spot{key, tie}
	if until := h.Until.UnixMilli(); !h.Until.IsZero() && until <= from.key {
		from = spot{until, math.MinInt64}
	}
	err = s.read(ctx, func(c *conn) (err error) {
		page, err = c.history(&h, from)
		return err
	})
	return page, err
}

func (c *conn) history(h *store.HistoryQuery, from spot) (page store.HistoryPage, err error) {
	q := c.on(stEnded)
	q.int(from.key).int(from.tie).int(historyRows + 1)
	var last spot
	for n := 0; q.next(); n++ {
		if n == historyRows || len(page.Tasks) == h.Limit {
			page.Next = fmt.Sprintf("%d-%d", last.key, last.tie)
			break
		}
		last = spot{q.intAt(11), q.intAt(0)}
		if !h.Since.IsZero() && last.key < h.Since.UnixMilli() {
			break // all that follow ended earlier still
		}
		t, bad := scanTask(&q)
		if bad != nil {
			err = bad
			break
		}
		if h.Takes(t) {
			page.Tasks = append(page.Tasks, *t)
		}
	}
	if end := q.end(); end != nil {
		return store.HistoryPage{}, end
	}
	return page, err
}
