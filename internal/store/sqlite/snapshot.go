package sqlite

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/internal/store"
	"github.com/signalbox-ai/signalbox/internal/store/group"
	"github.com/signalbox-ai/signalbox/internal/store/verbs"
)

// A snapshot is made of the file, where the rows are, and of the board, where
// they are counted. Both must show one moment. The file is ahead of the board,
// by one, between a commit and the writer's word to the board. A reader that
// sees such a file keeps that view of it, and the writer hands it the counts
// that belong to it.

// Snapshot returns what waits and runs at one moment.
func (b *Backend) Snapshot(ctx context.Context, heads int) (shot store.Snapshot, pauses []verbs.Doc, err error) {
	err = b.view(ctx, func(c *conn) (err error) {
		if shot.Counts, shot.Entry, err = b.countsOf(ctx, c); err != nil {
			return err
		}
		if shot.InFlight, err = c.inFlight(); err != nil {
			return err
		}
		q := c.on(stSlotsAll)
		if shot.Slots, err = slotRows(&q); err != nil {
			return err
		}
		if pauses, err = c.page(&verbs.Page{Kind: verbs.KindPause}); err != nil {
			return err
		}
		shot.Heads, err = c.heads(shot.Counts.Queues, heads)
		return err
	})
	return shot, pauses, err
}

// showWait bounds the wait for the board after a commit, which takes less than
// a millisecond unless the writer gave up.
const showWait = 5 * time.Second

// countsOf returns the counts of the moment that c sees from now on.
func (b *Backend) countsOf(ctx context.Context, c *conn) (store.Counts, int64, error) {
	n := &b.board
	n.mu.RLock()
	moment, entry, err := c.moment()
	if err != nil || moment == n.Moment {
		defer n.mu.RUnlock()
		return n.countsHeld(), entry, err
	}
	answer := n.ask()
	n.mu.RUnlock()
	late := time.NewTimer(showWait)
	defer late.Stop()
	select {
	case counts := <-answer:
		return counts, entry, nil
	case <-ctx.Done():
		return store.Counts{}, 0, group.Gone(ctx)
	case <-late.C:
		return store.Counts{}, 0, signalbox.Errorf(signalbox.CodeStoreFailed, "the database could not be read at one moment: its writer stands still")
	}
}

// moment begins the view of a transaction, and says which batch it shows.
func (c *conn) moment() (moment, entry int64, err error) {
	q := c.on(stMetaSeen)
	if q.next() {
		moment, entry = q.intAt(0), q.intAt(1)
	}
	return moment, entry, q.end()
}

// ask has the counts of the next moment sent; the lock is held by readers only.
func (b *board) ask() <-chan store.Counts {
	answer := make(chan store.Counts, 1)
	b.asking.Lock()
	defer b.asking.Unlock()
	b.asked = append(b.asked, answer)
	return answer
}

// answer hands the counts to those who asked; the lock is held by the writer.
func (b *board) answer() {
	for _, to := range b.asked {
		to <- b.countsHeld()
	}
	b.asked = nil
}

// heads returns the first tasks of each queue in which any wait.
func (c *conn) heads(queues map[string]int, limit int) (map[string][]signalbox.Task, error) {
	lines := make(map[string][]signalbox.Task, len(queues))
	if limit <= 0 {
		return lines, nil
	}
	for queue := range queues {
		first, err := c.waiters(queue, spotOf(store.Cursor{}), limit, nil)
		if err != nil {
			return nil, err
		}
		if lines[queue], err = c.tasks(first); err != nil {
			return nil, err
		}
	}
	return lines, nil
}

// waiter is a pending task in the order of its queue.
type waiter struct {
	spot
	seq int64
}

// Waiting lists pending tasks in the order in which they will be taken.
func (b *Backend) Waiting(ctx context.Context, queue string, after store.Cursor, limit int) (list []signalbox.Task, err error) {
	err = b.view(ctx, func(c *conn) error {
		first, err := c.firstOf(queue, spotOf(after), limit)
		if err != nil {
			return err
		}
		list, err = c.tasks(first)
		return err
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
		slices.SortFunc(list, func(a, b waiter) int {
			return cmp.Or(cmp.Compare(a.key, b.key), cmp.Compare(a.tie, b.tie))
		})
		list = list[:min(limit, len(list))]
	}
}

func (c *conn) waiters(queue string, from spot, limit int, list []waiter) ([]waiter, error) {
	q := c.on(stWaiting)
	q.exact(queue).int(from.key).int(from.tie).most(int64(limit))
	for q.next() {
		list = append(list, waiter{spot{q.intAt(0), q.intAt(1)}, q.intAt(2)})
	}
	return list, q.end()
}

func (c *conn) tasks(waiters []waiter) (list []signalbox.Task, err error) {
	for _, w := range waiters {
		q := c.on(stTaskBySeq)
		t, err := c.one(q.int(w.seq))
		if err != nil {
			return nil, err
		}
		if t != nil {
			list = append(list, *t)
		}
	}
	return list, nil
}
