package sqlite

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/internal/store"
	"github.com/signalbox-ai/signalbox/internal/store/group"
	"github.com/signalbox-ai/signalbox/internal/store/pack"
	"github.com/signalbox-ai/signalbox/internal/store/verbs"
)

// read runs f on a connection of its own. Reads are short: a long one would delay checkpoints.
func (b *Backend) read(ctx context.Context, f func(c *conn) error) error {
	var c *conn
	select {
	case c = <-b.readers:
	case <-ctx.Done():
		return group.Gone(ctx)
	}
	defer func() { b.readers <- c }()
	err := f(c)
	b.addSuspects(c)
	if err != nil {
		return readError(err)
	}
	return nil
}

// view is read in one snapshot of the file.
func (b *Backend) view(ctx context.Context, f func(c *conn) error) error {
	return b.read(ctx, func(c *conn) error {
		if err := c.do(stReadBegin); err != nil {
			return err
		}
		err := f(c)
		if end := c.do(stReadEnd); err == nil {
			err = end
		}
		return err
	})
}

// fetch returns what f reads on a connection of its own.
func fetch[T any](ctx context.Context, b *Backend, f func(c *conn) (T, error)) (out T, err error) {
	err = b.read(ctx, func(c *conn) (err error) {
		out, err = f(c)
		return err
	})
	return out, err
}

// task reads a row, nil if there is none. A damaged one is an error.
func (c *conn) task(id string) (*signalbox.Task, error) {
	before := len(c.damage)
	found, err := c.byNames(stTaskByID, []string{id})
	if err != nil {
		return nil, err
	}
	return found[0], c.checkSound(before, id)
}

// checkSound returns an error if more damage was found than before.
func (c *conn) checkSound(before int, id string) error {
	if len(c.damage) == before {
		return nil
	}
	return damagedTask(id, "it is not as it was written")
}

// Task returns a row.
func (b *Backend) Task(ctx context.Context, id string) (*signalbox.Task, error) {
	return fetch(ctx, b, func(c *conn) (*signalbox.Task, error) { return c.task(id) })
}

// Tasks returns rows, nil for those that do not exist or cannot be read.
func (b *Backend) Tasks(ctx context.Context, ids []string) (list []*signalbox.Task, err error) {
	err = b.view(ctx, func(c *conn) (err error) {
		list, err = c.existing(ids)
		return err
	})
	return list, err
}

// existing reads rows and skips damaged ones.
func (c *conn) existing(ids []string) ([]*signalbox.Task, error) {
	list := make([]*signalbox.Task, len(ids))
	for n, id := range ids {
		q := c.on(stTaskByID)
		if q.exact(id); q.next() && q.intAt(2) != rowDamaged {
			list[n] = c.scanTask(&q)
		}
		if err := q.end(); err != nil {
			return nil, err
		}
	}
	return list, nil
}

// Whole returns everything stored of a task.
func (b *Backend) Whole(ctx context.Context, id string) (w verbs.Whole, err error) {
	err = b.view(ctx, func(c *conn) (err error) {
		if w.Task, err = c.task(id); err != nil || w.Task == nil {
			return err
		}
		before := len(c.damage)
		if w.Request, err = c.request(w.Task.Seq); err != nil {
			return err
		}
		if w.Result, err = c.result(w.Task.Seq); err != nil {
			return err
		}
		if err := c.checkSound(before, id); err != nil {
			return err
		}
		stales, err := c.doc(verbs.DocKey{Kind: verbs.KindStale, ID: strconv.FormatInt(w.Task.Seq, 10)})
		if stales != nil {
			w.Stales = stales.Body
		}
		return err
	})
	return w, err
}

// findRows is how many of the newest tasks Find searches.
const findRows = 10_000

// maxString sorts after every ID and name.
var maxString = strings.Repeat("\xff", 64)

// Find returns the IDs that start or end with part, newest first. If very many start with it, only the newest
// by ID are considered: IDs begin with the time.
func (b *Backend) Find(ctx context.Context, part string, limit int) (ids []string, err error) {
	found := map[int64]string{}
	err = b.read(ctx, func(c *conn) error {
		q := c.on(stIDsFrom)
		q.exact(part).exact(part + "\U0010FFFF\U0010FFFF").most(findRows)
		for q.next() {
			if id := q.textAt(0); strings.HasPrefix(id, part) {
				found[q.intAt(1)] = id
			}
		}
		if err := q.end(); err != nil {
			return err
		}
		q = c.on(stIDsNewest)
		q.int(1 << 62).most(findRows)
		for q.next() {
			if id := q.textAt(0); strings.HasSuffix(id, part) {
				found[q.intAt(1)] = id
			}
		}
		return q.end()
	})
	if err != nil {
		return nil, err
	}
	seqs := slices.Sorted(maps.Keys(found))
	slices.Reverse(seqs)
	for _, seq := range seqs[:min(limit, len(seqs))] {
		ids = append(ids, found[seq])
	}
	return ids, nil
}

// Before counts the tasks before a task in its queue, at a cost independent of the length. Row
// and live totals are read one after the other, again if the task moved in between.
func (b *Backend) Before(ctx context.Context, id string, _ int) (n int, exact bool, t *signalbox.Task, err error) {
	const tries = 100
	for range tries {
		t = nil
		var at position
		err = b.read(ctx, func(c *conn) error {
			q := c.on(stTaskPlace)
			if q.exact(id); q.next() {
				t = &signalbox.Task{ID: id}
				if state := q.intAt(0); state == rowPending || state == rowParked {
					t.State, t.Queue, t.Place, at = signalbox.Pending, q.textAt(1), q.intAt(3), position{q.intAt(2), q.intAt(3)}
				}
			}
			return q.end()
		})
		if err != nil || t == nil || t.State != signalbox.Pending {
			return 0, true, t, err
		}
		if n, found := b.totals.rank(t.Queue, at); found {
			return n, true, t, nil
		}
	}
	return 0, true, &signalbox.Task{ID: id}, nil
}

// Counts returns how many tasks wait and run.
func (b *Backend) Counts(context.Context) (store.Counts, error) { return b.totals.counts(), nil }

// Lengths returns how many tasks wait in each of these queues.
func (b *Backend) Lengths(_ context.Context, queues []string) ([]int, error) {
	return b.totals.lengths(queues), nil
}

// Durations returns the run times of the newest completed tasks of an agent.
func (b *Backend) Durations(_ context.Context, agent string, limit int) ([]time.Duration, error) {
	return b.totals.durations(agent, limit), nil
}

// list runs a statement that returns tasks.
func (b *Backend) list(ctx context.Context, id stmtID, bind func(q *query) *query) ([]signalbox.Task, error) {
	return fetch(ctx, b, func(c *conn) ([]signalbox.Task, error) {
		q := c.on(id)
		return c.all(bind(&q))
	})
}

// Overdue lists pending tasks that have waited too long, most overdue first.
func (b *Backend) Overdue(ctx context.Context, now time.Time, limit int) ([]signalbox.Task, error) {
	return b.list(ctx, stOverdue, func(q *query) *query { return q.int(now.UnixMilli()).most(int64(limit)) })
}

// SessionTasks lists pending and in-flight tasks of a session by order.
func (b *Backend) SessionTasks(ctx context.Context, session string, limit int) ([]signalbox.Task, error) {
	return b.list(ctx, stTurn, func(q *query) *query { return q.exact(session).most(int64(limit)) })
}

// Children lists the tasks of a parent.
func (b *Backend) Children(ctx context.Context, parent string, limit int) ([]signalbox.Task, error) {
	return b.list(ctx, stChildren, func(q *query) *query { return q.exact(parent).most(int64(limit)) })
}

// Ended lists ended tasks before a cursor, newest end first.
func (b *Backend) Ended(ctx context.Context, before store.EndedCursor, limit int) ([]signalbox.Task, error) {
	return b.list(ctx, stEnded, func(q *query) *query { return q.int(before.EndedMS).int(before.Seq).most(int64(limit)) })
}

// InFlight lists the tasks that hold a slot, in the order of their claims.
func (b *Backend) InFlight(ctx context.Context) (list []signalbox.Task, err error) {
	err = b.view(ctx, func(c *conn) (err error) {
		list, err = c.inFlight()
		return err
	})
	return list, err
}

func (c *conn) inFlight() (list []signalbox.Task, err error) {
	var held []string
	q := c.on(stInFlight)
	for q.next() {
		held = append(held, q.textAt(0))
	}
	if err := q.end(); err != nil {
		return nil, err
	}
	there, err := c.existing(held)
	for _, t := range there {
		if t != nil && t.State.InFlight() {
			list = append(list, *t)
		}
	}
	slices.SortFunc(list, func(a, b signalbox.Task) int { return cmp.Compare(a.Fence, b.Fence) })
	return list, err
}

// Slots lists the slots in use by agent and slot.
func (b *Backend) Slots(ctx context.Context) ([]signalbox.Slot, error) {
	return fetch(ctx, b, func(c *conn) ([]signalbox.Slot, error) {
		q := c.on(stSlotsAll)
		return slotRows(&q)
	})
}

// Doc returns a doc.
func (b *Backend) Doc(ctx context.Context, k verbs.DocKey) (*verbs.Doc, error) {
	return fetch(ctx, b, func(c *conn) (*verbs.Doc, error) { return c.doc(k) })
}

// Docs lists docs of a kind.
func (b *Backend) Docs(ctx context.Context, p verbs.Page) ([]verbs.Doc, error) {
	return fetch(ctx, b, func(c *conn) ([]verbs.Doc, error) { return c.page(&p) })
}

// Entries returns journal entries, oldest first.
func (b *Backend) Entries(ctx context.Context, after int64, limit int) (list []verbs.Entry, err error) {
	oldest, _ := b.totals.journalRange()
	after = max(after, oldest-1)
	err = b.read(ctx, func(c *conn) error {
		q := c.on(stJournalAfter)
		q.int(after).most(int64(limit)) // a row holds at least one entry
		var bad error
		for len(list) < limit && bad == nil && q.next() {
			var entries []signalbox.Entry
			entries, bad = pack.ReadEntries(q.bytesAt(3), q.intAt(1))
			for _, e := range entries {
				if e.Seq > after && len(list) < limit {
					list = append(list, verbs.Entry{Entry: e})
				}
			}
		}
		if err := q.end(); err != nil {
			return err
		}
		if bad != nil {
			return journalDamaged(after)
		}
		return nil
	})
	return list, err
}

// EntryRange returns the oldest and newest Seq of the journal.
func (b *Backend) EntryRange(context.Context) (oldest, newest int64, err error) {
	oldest, newest = b.totals.journalRange()
	return oldest, newest, nil
}
