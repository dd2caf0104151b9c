package sqlite

import (
	"context"
	"math"
	"time"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/internal/store"
	"github.com/signalbox-ai/signalbox/internal/store/group"
)

// A snapshot is made of the file, where the rows are, and of the board, where
// they are counted. Both must show one moment: the commits of the file are
// numbered, and the board knows which one it shows. The file is ahead of it,
// by one, between a commit and the writer's word to the board. A reader that
// sees such a file keeps that view of it, and the writer hands it the counts
// that belong to it.

// Snapshot returns what waits and runs at one moment.
func (s *Store) Snapshot(ctx context.Context, heads int) (shot store.Snapshot, err error) {
	err = s.read(ctx, func(c *conn) error {
		return c.snapshot(func() (err error) {
			if shot.Counts, shot.Entry, err = s.countsOf(ctx, c); err != nil {
				return err
			}
			if shot.InFlight, err = c.inFlight(); err != nil {
				return err
			}
			if shot.Slots, err = c.slotRows(); err != nil {
				return err
			}
			if shot.Pauses, err = c.pauseRows(); err != nil {
				return err
			}
			shot.Heads, err = c.heads(shot.Counts.Queues, heads)
			return err
		})
	})
	if err != nil {
		return store.Snapshot{}, err
	}
	return shot, nil
}

// showWait bounds the wait for the board after a commit, which takes less than
// a millisecond unless the writer gave up.
const showWait = 5 * time.Second

// countsOf returns the counts of the moment that c sees from now on.
func (s *Store) countsOf(ctx context.Context, c *conn) (store.Counts, int64, error) {
	b := &s.board
	b.mu.RLock()
	moment, entry, err := c.moment()
	if err != nil || moment == b.commits {
		defer b.mu.RUnlock()
		return b.countsHeld(), entry, err
	}
	answer := b.ask()
	b.mu.RUnlock()
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

// moment begins the view of a transaction, and says which commit it shows.
func (c *conn) moment() (commits, entry int64, err error) {
	q := c.on(stMetaSeen)
	if q.next() {
		commits, entry = q.intAt(0), q.intAt(1)
	}
	return commits, entry, q.end()
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
		first, err := c.waiters(queue, spot{math.MinInt64, math.MinInt64}, limit, nil)
		if err != nil {
			return nil, err
		}
		if lines[queue], err = c.tasks(first); err != nil {
			return nil, err
		}
	}
	return lines, nil
}
