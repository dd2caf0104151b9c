package sqlite

import (
	"context"
	"time"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/internal/store"
	"github.com/signalbox-ai/signalbox/internal/store/pack"
)

// Apply writes a change where the row still has the revision that the change
// was made from.
func (s *Store) Apply(ctx context.Context, c signalbox.Change, now time.Time) (got signalbox.Task, err error) {
	size := 0
	var rest []byte
	if c.Result != nil {
		rest = pack.Result(c.Result)
		size = len(c.Result.Output) + len(c.Result.Tail) + len(rest)
	}
	err = s.do(ctx, size, func(w *writer) (err error) {
		got, err = w.apply(&c, rest, now)
		return err
	})
	if err != nil {
		return signalbox.Task{}, err
	}
	return got, nil
}

func (w *writer) apply(c *signalbox.Change, rest []byte, now time.Time) (signalbox.Task, error) {
	before, err := w.find(c.Task.ID)
	if err != nil {
		return signalbox.Task{}, err
	}
	if before.Rev != c.Task.Rev {
		return signalbox.Task{}, store.ErrStale
	}
	if c.Slot == signalbox.SlotTake {
		return signalbox.Task{}, signalbox.Errorf(signalbox.CodeConflict, "task %s: a slot is taken by Claim, not by Apply", c.Task.ID)
	}
	after := w.merge(before, c)
	binds, err := w.believed(before, &after, c)
	if err != nil {
		return signalbox.Task{}, err
	}
	if after.SessionID == "" && after.State == signalbox.Pending && due(&after, now) {
		after.Ready = true
	}
	if err := w.update(before, &after); err != nil {
		return signalbox.Task{}, err
	}
	if err := w.applySlot(c); err != nil {
		return signalbox.Task{}, err
	}
	if err := w.applyLarge(before, &after, c, rest); err != nil {
		return signalbox.Task{}, err
	}
	row, err := w.applySession(before, &after, binds, now)
	if err != nil {
		return signalbox.Task{}, err
	}
	w.note(&c.Entry)
	return row, nil
}

// merge returns the row that the change makes of before. What the store sets
// is taken from the stored row, never from the caller.
func (w *writer) merge(before *signalbox.Task, c *signalbox.Change) signalbox.Task {
	t := c.Task
	t.Seq, t.Rev = before.Seq, before.Rev+1
	t.Place, t.EnqueuedAt = before.Place, before.EnqueuedAt
	t.IdempotencyKey = before.IdempotencyKey
	t.Ready = before.Ready && t.State == signalbox.Pending && !c.Back
	if c.Back {
		w.enqueue(&t, c.Entry.At)
	}
	return t
}

// update writes a changed row.
func (w *writer) update(before, after *signalbox.Task) error {
	id := updateOf(before, after)
	q := w.write(id)
	bindUpdate(&q, id, after)
	if err := q.run(); err != nil {
		return err
	}
	kept := *after
	w.row(before, &kept)
	return nil
}

// applySlot does to the slot of the changed task what the change says. A slot
// that is gone, or has another fence by now, is left alone.
func (w *writer) applySlot(c *signalbox.Change) error {
	t := &c.Task
	row, held := w.slot(t.Agent, t.Slot, t.Fence)
	if !held {
		return nil
	}
	switch c.Slot {
	case signalbox.SlotFree:
		return w.dropSlot(t.Agent, t.Slot)
	case signalbox.SlotWithhold:
		row.withheld = true
		w.setSlot(t.Agent, t.Slot, &row)
		q := w.write(stSlotWithhold)
		return q.exact(t.Agent).int(int64(t.Slot)).run()
	}
	return nil
}

// applyLarge stores the result and erases the environment of a task that
// ended.
func (w *writer) applyLarge(before, after *signalbox.Task, c *signalbox.Change, rest []byte) error {
	if c.Result != nil {
		q := w.write(stResultPut)
		if err := q.int(after.Seq).text(c.Result.Output).text(c.Result.Tail).bytes(rest).run(); err != nil {
			return err
		}
	}
	if after.State.Terminal() && before.HasEnv {
		return w.eraseEnv(after.Seq)
	}
	return nil
}

func (w *writer) eraseEnv(seq int64) error {
	for _, id := range []stmtID{stEnvBlank, stEnvDelete} {
		q := w.write(id)
		if err := q.int(seq).run(); err != nil {
			return err
		}
	}
	return nil
}

// believed reports whether the change binds the session. One that the agent
// may not name is taken out of the row.
func (w *writer) believed(before, after *signalbox.Task, c *signalbox.Change) (bool, error) {
	if !c.Session || before.SessionID != "" {
		return c.Session, nil
	}
	held, err := w.session(after.SessionID)
	if err != nil || !store.NotTheirs(held, before, after) {
		return true, err
	}
	after.SessionID = ""
	return false, nil
}

// applySession binds the session and settles the one the task was in and the
// one it is in. It returns the row as stored.
func (w *writer) applySession(before, after *signalbox.Task, binds bool, now time.Time) (signalbox.Task, error) {
	if before.SessionID == "" && after.SessionID == "" {
		return *after, nil
	}
	if binds {
		if err := w.bind(before, after, now); err != nil {
			return *after, err
		}
	}
	if before.SessionID != after.SessionID {
		if err := w.settle(before.SessionID, now); err != nil {
			return *after, err
		}
	}
	return w.settledRow(after, now)
}

// find returns the row of a task, or CodeNotFound. It must not be changed.
func (w *writer) find(id string) (*signalbox.Task, error) {
	if t := w.hot[id]; t != nil {
		return t, nil
	}
	q := w.on(stTaskByID)
	t, err := one(q.exact(id))
	if err == nil && t == nil {
		err = unknownTask(id)
	}
	return t, err
}

func (w *writer) bySeq(seq int64) (*signalbox.Task, error) {
	q := w.on(stTaskBySeq)
	return one(q.int(seq))
}
