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

// A snapshot combines rows of the file and live totals, which must match. Between a commit and
// the update of the totals the file is one batch ahead. A reader that sees such a file keeps
// its read transaction, and the writer sends it the matching counts.

// Snapshot returns a consistent snapshot of waiting and running tasks.
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

// snapshotTimeout bounds the wait for the live totals after a commit, which takes less than a
// millisecond unless the writer gave up.
const snapshotTimeout = 5 * time.Second

// countsOf returns the counts that match the snapshot of c.
func (b *Backend) countsOf(ctx context.Context, c *conn) (store.Counts, int64, error) {
	n := &b.totals
	n.mu.RLock()
	moment, entry, err := c.moment()
	if err != nil || moment == n.Moment {
		defer n.mu.RUnlock()
		return n.countsHeld(), entry, err
	}
	answer := n.requestCounts()
	n.mu.RUnlock()
	late := time.NewTimer(snapshotTimeout)
	defer late.Stop()
	select {
	case counts := <-answer:
		return counts, entry, nil
	case <-ctx.Done():
		return store.Counts{}, 0, group.Gone(ctx)
	case <-late.C:
		return store.Counts{}, 0, signalbox.Errorf(signalbox.CodeStoreFailed, "the database gave no consistent snapshot: its writer does not respond")
	}
}

// moment begins a read transaction, and returns the batch it shows.
func (c *conn) moment() (moment, entry int64, err error) {
	q := c.on(stMetaSeen)
	if q.next() {
		moment, entry = q.intAt(0), q.intAt(1)
	}
	return moment, entry, q.end()
}

// requestCounts registers a reader for the counts of the next batch; the lock is held by
// readers only.
func (b *liveTotals) requestCounts() <-chan store.Counts {
	answer := make(chan store.Counts, 1)
	b.readersMu.Lock()
	defer b.readersMu.Unlock()
	b.waitingReaders = append(b.waitingReaders, answer)
	return answer
}

// sendCounts sends the counts to registered readers; the lock is held by the writer.
func (b *liveTotals) sendCounts() {
	for _, to := range b.waitingReaders {
		to <- b.countsHeld()
	}
	b.waitingReaders = nil
}

// heads returns the first tasks of each queue in which any wait.
func (c *conn) heads(queues map[string]int, limit int) (map[string][]signalbox.Task, error) {
	lines := make(map[string][]signalbox.Task, len(queues))
	if limit <= 0 {
		return lines, nil
	}
	for queue := range queues {
		first, err := c.waiters(queue, positionOf(store.Cursor{}), limit, nil)
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
	position
	seq int64
}

// Waiting lists pending tasks in claim order.
func (b *Backend) Waiting(ctx context.Context, queue string, after store.Cursor, limit int) (list []signalbox.Task, err error) {
	err = b.view(ctx, func(c *conn) error {
		first, err := c.firstOf(queue, positionOf(after), limit)
		if err != nil {
			return err
		}
		list, err = c.tasks(first)
		return err
	})
	return list, err
}

// firstOf returns the first waiters after from, of one queue or of all.
func (c *conn) firstOf(queue string, from position, limit int) ([]waiter, error) {
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
		// Keep only the first ones, since there can be many queues.
		slices.SortFunc(list, func(a, b waiter) int {
			return cmp.Or(cmp.Compare(a.key, b.key), cmp.Compare(a.tie, b.tie))
		})
		list = list[:min(limit, len(list))]
	}
}

func (c *conn) waiters(queue string, from position, limit int, list []waiter) ([]waiter, error) {
	q := c.on(stWaiting)
	q.exact(queue).int(from.key).int(from.tie).most(int64(limit))
	for q.next() {
		list = append(list, waiter{position{q.intAt(0), q.intAt(1)}, q.intAt(2)})
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
