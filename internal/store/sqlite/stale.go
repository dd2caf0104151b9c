package sqlite

import (
	"context"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/internal/store/pack"
)

// KeepStale keeps what a void execution of a task said, by its fence.
func (s *Store) KeepStale(ctx context.Context, id string, said signalbox.Stale) error {
	rest := pack.Result(&said.Result)
	size := len(said.Result.Output) + len(said.Result.Tail) + len(rest)
	return s.do(ctx, size, func(w *writer) error { return w.keepStale(id, &said, rest) })
}

func (w *writer) keepStale(id string, said *signalbox.Stale, rest []byte) error {
	t, err := w.find(id)
	if err != nil {
		return err
	}
	q := w.write(stStalePut)
	q.int(t.Seq).int(said.Fence).text(said.Agent).text(said.TaskID).time(said.At).text(said.State).text(said.Message)
	if err := q.text(said.Result.Output).text(said.Result.Tail).bytes(rest).run(); err != nil {
		return err
	}
	q = w.write(stStaleCut)
	return q.int(t.Seq).int(signalbox.MaxStale).run()
}

// Stales lists what void executions of a task said, by fence.
func (s *Store) Stales(ctx context.Context, id string) (list []signalbox.Stale, err error) {
	err = s.read(ctx, func(c *conn) (err error) {
		list, err = c.stales(id)
		return err
	})
	return list, err
}

func (c *conn) stales(id string) (list []signalbox.Stale, err error) {
	q := c.on(stStalesOf)
	q.exact(id)
	found := false
	for err == nil && q.next() {
		found = true
		if q.isNull(0) {
			break // the task has none
		}
		said := signalbox.Stale{
			Fence: q.intAt(0), Agent: q.textAt(1), TaskID: q.textAt(2), At: q.timeAt(3), State: q.textAt(4), Message: q.textAt(5),
		}
		said.Result, err = pack.ReadResult(q.textAt(6), q.textAt(7), q.bytesAt(8))
		list = append(list, said)
	}
	if err := after(&q, id, found, err); err != nil {
		return nil, err
	}
	return list, nil
}

// Children lists the tasks that the execution of a task called, by Seq.
func (s *Store) Children(ctx context.Context, id string, limit int) (list []signalbox.Task, err error) {
	err = s.read(ctx, func(c *conn) (err error) {
		q := c.on(stChildren)
		list, err = all(q.exact(id).int(int64(max(0, limit))))
		return err
	})
	return list, err
}
