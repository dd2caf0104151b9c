package verbs_test

import (
	"cmp"
	"context"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/internal/store"
	"github.com/signalbox-ai/signalbox/internal/store/verbs"
)

// look reads from the server at one moment.
func look[T any](ctx context.Context, c *conn, read func(d *data) T) (got T, err error) {
	if _, err := c.begin(ctx, "read", nil); err != nil {
		return got, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	return read(c.data), nil
}

func (c *conn) Task(ctx context.Context, id string) (*signalbox.Task, error) {
	return look(ctx, c, func(d *data) *signalbox.Task { return d.byID(id) })
}

func (c *conn) Tasks(ctx context.Context, ids []string) ([]*signalbox.Task, error) {
	return look(ctx, c, func(d *data) []*signalbox.Task {
		all := make([]*signalbox.Task, len(ids))
		for i, id := range ids {
			all[i] = d.byID(id)
		}
		return all
	})
}

func (d *data) byID(id string) *signalbox.Task { return d.bySeq(d.ids[id]) }

func (c *conn) Whole(ctx context.Context, id string) (verbs.Whole, error) {
	return look(ctx, c, func(d *data) (w verbs.Whole) {
		if w.Task = d.byID(id); w.Task == nil {
			return w
		}
		if q, known := d.requests[w.Task.Seq]; known {
			q = copyRequest(q)
			w.Request = &q
		}
		if r, known := d.results[w.Task.Seq]; known {
			r = copyResult(r)
			w.Result = &r
		}
		if doc, known := d.docs[verbs.DocKey{Kind: verbs.KindStale, ID: strconv.FormatInt(w.Task.Seq, 10)}]; known {
			w.Stales = doc.Body
		}
		return w
	})
}

func (c *conn) Find(ctx context.Context, part string, limit int) ([]string, error) {
	return look(ctx, c, func(d *data) (ids []string) {
		newest := d.sorted(func(a, b *signalbox.Task) int { return cmp.Compare(b.Seq, a.Seq) }, func(*signalbox.Task) bool { return true })
		for n, t := range newest {
			if len(ids) < limit && (strings.HasPrefix(t.ID, part) || (n < 10_000 && strings.HasSuffix(t.ID, part))) {
				ids = append(ids, t.ID)
			}
		}
		return ids
	})
}

// list reads tasks in an order.
func (c *conn) list(ctx context.Context, order func(a, b *signalbox.Task) int, limit int, takes func(*signalbox.Task) bool) ([]signalbox.Task, error) {
	return look(ctx, c, func(d *data) []signalbox.Task { return values(first(d.sorted(order, takes), limit)) })
}

func values(tasks []*signalbox.Task) (list []signalbox.Task) {
	for _, t := range tasks {
		list = append(list, *t)
	}
	return list
}

func (c *conn) Waiting(ctx context.Context, queue string, after store.Cursor, limit int) ([]signalbox.Task, error) {
	return c.list(ctx, byOrder, limit, func(t *signalbox.Task) bool {
		return t.State == signalbox.Pending && (queue == "" || t.Queue == queue) && (after == (store.Cursor{}) || after.Before(store.CursorOf(t)))
	})
}

func byFence(a, b *signalbox.Task) int { return cmp.Compare(a.Fence, b.Fence) }

func flies(t *signalbox.Task) bool { return t.State.InFlight() }

func (c *conn) InFlight(ctx context.Context) ([]signalbox.Task, error) {
	return c.list(ctx, byFence, 1<<30, flies)
}

func (c *conn) Overdue(ctx context.Context, now time.Time, limit int) ([]signalbox.Task, error) {
	order := func(a, b *signalbox.Task) int {
		return cmp.Or(cmp.Compare(a.WaitUntil.UnixMilli(), b.WaitUntil.UnixMilli()), cmp.Compare(a.Place, b.Place))
	}
	return c.list(ctx, order, limit, func(t *signalbox.Task) bool {
		return t.State == signalbox.Pending && !t.WaitUntil.IsZero() && t.WaitUntil.UnixMilli() <= now.UnixMilli()
	})
}

func (c *conn) SessionTasks(ctx context.Context, session string, limit int) ([]signalbox.Task, error) {
	return look(ctx, c, func(d *data) []signalbox.Task { return values(first(d.turn(session), limit)) })
}

func (c *conn) Durations(ctx context.Context, agent string, limit int) ([]time.Duration, error) {
	return look(ctx, c, func(d *data) (list []time.Duration) {
		runs := d.sorted(byEnd, func(t *signalbox.Task) bool { return t.State == signalbox.Completed && t.Agent == agent })
		slices.Reverse(runs)
		for _, t := range first(runs, limit) {
			list = append(list, max(0, t.EndedAt.Sub(t.StartedAt)))
		}
		return list
	})
}

func (c *conn) Children(ctx context.Context, parent string, limit int) ([]signalbox.Task, error) {
	order := func(a, b *signalbox.Task) int { return cmp.Compare(a.Seq, b.Seq) }
	return c.list(ctx, order, limit, func(t *signalbox.Task) bool { return t.ParentID == parent })
}

func (c *conn) Slots(ctx context.Context) ([]signalbox.Slot, error) {
	return look(ctx, c, func(d *data) []signalbox.Slot { return d.slotsOf(func(*signalbox.Slot) bool { return true }) })
}

func (c *conn) Counts(ctx context.Context) (store.Counts, error) {
	return look(ctx, c, (*data).counts)
}

func (c *conn) Lengths(ctx context.Context, queues []string) ([]int, error) {
	return look(ctx, c, func(d *data) []int {
		counts, n := d.counts(), make([]int, len(queues))
		for i, queue := range queues {
			n[i] = counts.Queues[queue]
		}
		return n
	})
}

func (d *data) counts() store.Counts {
	n := store.Counts{Queues: map[string]int{}, Limits: map[string]int{}, InFlight: map[signalbox.State]int{}}
	for _, t := range d.tasks {
		switch {
		case t.State == signalbox.Pending:
			n.Pending++
			n.Queues[t.Queue]++
			n.Limits[t.Limit]++
			if n.Oldest.IsZero() || t.CreatedAt.Before(n.Oldest) {
				n.Oldest = t.CreatedAt
			}
		case t.State.InFlight():
			n.InFlight[t.State]++
		}
	}
	return n
}

func (c *conn) Before(ctx context.Context, id string, most int) (n int, exact bool, task *signalbox.Task, err error) {
	task, err = look(ctx, c, func(d *data) *signalbox.Task {
		t := d.byID(id)
		if t != nil && t.State == signalbox.Pending {
			n = min(most, len(d.sorted(byOrder, func(o *signalbox.Task) bool {
				return o.State == signalbox.Pending && o.Queue == t.Queue && byOrder(o, t) < 0
			})))
		}
		return t
	})
	return n, n < most, task, err
}

func (c *conn) Ended(ctx context.Context, before store.EndedSpot, limit int) ([]signalbox.Task, error) {
	return c.list(ctx, func(a, b *signalbox.Task) int { return byEnd(b, a) }, limit, func(t *signalbox.Task) bool {
		at := t.EndedAt.UnixMilli()
		return t.State.Terminal() && (at < before.EndedMS || (at == before.EndedMS && t.Seq < before.Seq))
	})
}

func (c *conn) Snapshot(ctx context.Context, heads int) (s store.Snapshot, pauses []verbs.Doc, err error) {
	s, err = look(ctx, c, func(d *data) store.Snapshot {
		s := store.Snapshot{
			Entry: d.Entry, Counts: d.counts(), InFlight: values(d.sorted(byFence, flies)),
			Slots: d.slotsOf(func(*signalbox.Slot) bool { return true }), Heads: map[string][]signalbox.Task{},
		}
		for queue := range s.Counts.Queues {
			line := d.sorted(byOrder, func(t *signalbox.Task) bool { return t.State == signalbox.Pending && t.Queue == queue })
			if heads > 0 {
				s.Heads[queue] = values(first(line, heads))
			}
		}
		pauses = d.page(verbs.Page{Kind: "pause"})
		return s
	})
	return s, pauses, err
}

func (c *conn) Entries(ctx context.Context, after int64, limit int) ([]verbs.Entry, error) {
	return look(ctx, c, func(d *data) []verbs.Entry {
		n, _ := slices.BinarySearchFunc(d.entries, after+1, func(e verbs.Entry, seq int64) int { return cmp.Compare(e.Seq, seq) })
		return slices.Clone(first(d.entries[n:], limit))
	})
}

func (c *conn) EntryRange(ctx context.Context) (oldest, newest int64, err error) {
	_, err = look(ctx, c, func(d *data) int {
		if len(d.entries) > 0 {
			oldest, newest = d.entries[0].Seq, d.Entry
		}
		return 0
	})
	return oldest, newest, err
}

func (c *conn) Doc(ctx context.Context, k verbs.DocKey) (*verbs.Doc, error) {
	return look(ctx, c, func(d *data) *verbs.Doc {
		if doc, known := d.docs[k]; known {
			return &doc
		}
		return nil
	})
}

func (c *conn) Docs(ctx context.Context, p verbs.Page) ([]verbs.Doc, error) {
	return look(ctx, c, func(d *data) []verbs.Doc { return d.page(p) })
}
