package sqlite

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/internal/store"
	"github.com/signalbox-ai/signalbox/internal/store/group"
	"github.com/signalbox-ai/signalbox/internal/store/pack"
)

// read runs f on a connection of its own. Reads are short: one that lasts
// keeps the write-ahead log from being folded into the file.
func (s *Store) read(ctx context.Context, f func(c *conn) error) error {
	if err := s.ready(ctx); err != nil {
		return err
	}
	var c *conn
	select {
	case c = <-s.readers:
	default:
		select {
		case c = <-s.readers:
		case <-ctx.Done():
			return group.Gone(ctx)
		case <-s.closing:
			return group.ErrClosed
		}
	}
	defer func() { s.readers <- c }()
	if err := f(c); err != nil {
		return unread(err)
	}
	return nil
}

// ready refuses a read that nobody waits for, or of a closed store.
func (s *Store) ready(ctx context.Context) error {
	if err := group.Gone(ctx); err != nil {
		return err
	}
	select {
	case <-s.closing:
		return group.ErrClosed
	default:
		return nil
	}
}

// snapshot runs f in one view of the file.
func (c *conn) snapshot(f func() error) error {
	q := c.on(stReadBegin)
	if err := q.run(); err != nil {
		return err
	}
	err := f()
	q = c.on(stReadEnd)
	if end := q.run(); err == nil {
		err = end
	}
	return err
}

// Task returns the row of id, or CodeNotFound.
func (s *Store) Task(ctx context.Context, id string) (got signalbox.Task, err error) {
	err = s.read(ctx, func(c *conn) (err error) {
		got, err = c.task(id)
		return err
	})
	return got, err
}

func (c *conn) task(id string) (signalbox.Task, error) {
	q := c.on(stTaskByID)
	t, err := one(q.exact(id))
	if err == nil && t == nil {
		err = unknownTask(id)
	}
	if err != nil {
		return signalbox.Task{}, err
	}
	return *t, nil
}

// Tasks returns the rows of those of the tasks that are there.
func (s *Store) Tasks(ctx context.Context, ids []string) (there []signalbox.Task, err error) {
	err = s.read(ctx, func(c *conn) error {
		return c.snapshot(func() error {
			for _, id := range ids {
				q := c.on(stTaskByID)
				t, err := one(q.exact(id))
				if err != nil {
					return err
				}
				if t != nil {
					there = append(there, *t)
				}
			}
			return nil
		})
	})
	return there, err
}

// Whole returns all of a task.
func (s *Store) Whole(ctx context.Context, id string) (w store.Whole, err error) {
	err = s.read(ctx, func(c *conn) error {
		return c.snapshot(func() (err error) {
			if w.Task, err = c.task(id); err != nil {
				return err
			}
			if w.Request, err = c.request(id); err != nil {
				return err
			}
			if w.Result, err = c.result(id); err != nil {
				return err
			}
			w.Stales, err = c.stales(id)
			return err
		})
	})
	if err == nil && w.Task.State == signalbox.Pending {
		w.Position, err = s.Position(ctx, id)
	}
	return w, err
}

// Request returns what was asked for.
func (s *Store) Request(ctx context.Context, id string) (r signalbox.Request, err error) {
	err = s.read(ctx, func(c *conn) (err error) {
		r, err = c.request(id)
		return err
	})
	return r, err
}

func (c *conn) request(id string) (r signalbox.Request, err error) {
	q := c.on(stRequestByID)
	q.exact(id)
	found := q.next()
	if found {
		r, err = pack.ReadRequest(q.textAt(0), q.bytesAt(1), q.bytesAt(2))
	}
	return r, after(&q, id, found, err)
}

// Result returns what the task left behind.
func (s *Store) Result(ctx context.Context, id string) (r signalbox.Result, err error) {
	err = s.read(ctx, func(c *conn) (err error) {
		r, err = c.result(id)
		return err
	})
	return r, err
}

func (c *conn) result(id string) (r signalbox.Result, err error) {
	q := c.on(stResultByID)
	q.exact(id)
	found := q.next()
	if found {
		r, err = pack.ReadResult(q.textAt(0), q.textAt(1), q.bytesAt(2))
	}
	return r, after(&q, id, found, err)
}

func after(q *query, id string, found bool, err error) error {
	if end := q.end(); end != nil {
		return end
	}
	if err == nil && !found {
		return unknownTask(id)
	}
	return err
}

// Find returns the ids that begin or end with part, newest first. Where very
// many begin with it, the newest of them by id are looked at: ids begin with
// the time.
func (s *Store) Find(ctx context.Context, part string, limit int) (ids []string, err error) {
	found := map[int64]string{}
	err = s.read(ctx, func(c *conn) error {
		q := c.on(stIDsFrom)
		q.exact(part).exact(part + "\U0010FFFF\U0010FFFF").int(findRows)
		for q.next() {
			if id := q.textAt(0); strings.HasPrefix(id, part) {
				found[q.intAt(1)] = id
			}
		}
		if err := q.end(); err != nil {
			return err
		}
		q = c.on(stIDsNewest)
		q.int(1 << 62).int(findRows)
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
	return newestFirst(found, limit), nil
}

// findRows is how many of the newest tasks Find seeks among.
const findRows = 10_000

func newestFirst(found map[int64]string, limit int) []string {
	seqs := make([]int64, 0, len(found))
	for seq := range found {
		seqs = append(seqs, seq)
	}
	slices.Sort(seqs)
	slices.Reverse(seqs)
	var ids []string
	for _, seq := range seqs[:max(0, min(limit, len(seqs)))] {
		ids = append(ids, found[seq])
	}
	return ids
}

// Position returns the task's place in its queue. It is exact however long
// the line is, and is marked as the contract says all the same.
func (s *Store) Position(ctx context.Context, id string) (store.Position, error) {
	if err := s.ready(ctx); err != nil {
		return store.Position{}, err
	}
	n := s.board.rankOfRecent(id)
	if n == 0 {
		var err error
		if n, err = s.rank(ctx, id); err != nil {
			return store.Position{}, err
		}
	}
	return store.Position{N: n, Approximate: n > store.MaxExactPosition}, nil
}

// rank finds where a task stands. The row and the board are read one after
// the other: where the task moved in between, it is read again.
func (s *Store) rank(ctx context.Context, id string) (n int, err error) {
	const tries = 100
	for range tries {
		var queue string
		var at spot
		err = s.read(ctx, func(c *conn) error {
			q := c.on(stTaskPlace)
			q.exact(id)
			found := q.next()
			if found && q.intAt(0) == rowPending {
				queue, at = q.textAt(1), spot{q.intAt(2), q.intAt(3)}
			}
			return after(&q, id, found, nil)
		})
		if err != nil || queue == "" {
			return 0, err
		}
		if n = s.board.rank(queue, at); n > 0 {
			return n, nil
		}
	}
	return 0, nil
}

// Counts returns how many tasks wait and run.
func (s *Store) Counts(ctx context.Context) (store.Counts, error) {
	if err := s.ready(ctx); err != nil {
		return store.Counts{}, err
	}
	return s.board.counts(), nil
}

// Lengths returns how many tasks wait in each of these queues.
func (s *Store) Lengths(ctx context.Context, queues ...string) ([]int, error) {
	if err := s.ready(ctx); err != nil {
		return nil, err
	}
	return s.board.lengths(queues), nil
}

// Durations returns the run times of the newest completed tasks of an agent.
func (s *Store) Durations(ctx context.Context, agent string, limit int) ([]time.Duration, error) {
	if err := s.ready(ctx); err != nil {
		return nil, err
	}
	return s.board.durations(agent, limit), nil
}

// Agents lists the agents by name.
func (s *Store) Agents(ctx context.Context) ([]signalbox.Agent, error) {
	if err := s.ready(ctx); err != nil {
		return nil, err
	}
	return s.board.agentList(), nil
}

// Pauses lists the pauses by queue.
func (s *Store) Pauses(ctx context.Context) ([]signalbox.Pause, error) {
	if err := s.ready(ctx); err != nil {
		return nil, err
	}
	return s.board.pauseList(), nil
}

// ByKey returns the row of the task with an idempotency key.
func (s *Store) ByKey(ctx context.Context, key string) (t signalbox.Task, err error) {
	err = s.read(ctx, func(c *conn) error {
		q := c.on(stTaskByKey)
		row, err := one(q.exact(key))
		if err == nil && (row == nil || key == "") {
			err = store.UnknownKey(key)
		}
		if err == nil {
			t = *row
		}
		return err
	})
	return t, err
}
