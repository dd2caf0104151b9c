package verbs

import (
	"context"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/internal/store"
)

type restore struct {
	row store.Restored
	got signalbox.Task
}

// Restore stores a task from another store.
func (s *Store) Restore(ctx context.Context, r store.Restored) (signalbox.Task, error) {
	v := &restore{row: r}
	size := sizeOf(&r.Request)
	if r.Result != nil {
		size += len(r.Result.Output) + len(r.Result.Tail)
	}
	if err := s.do(ctx, v, size); err != nil {
		return signalbox.Task{}, err
	}
	return v.got, nil
}

func (v *restore) run(x *workingSet) error {
	if err := store.CheckRestored(&v.row); err != nil {
		return err
	}
	t := new(signalbox.Task)
	*t = v.row.Task
	stored, known := x.byID(t.ID), x.byKey(t.IdempotencyKey)
	if t.SessionID != "" {
		x.nextTurn(t.SessionID)
	}
	if x.missing {
		x.prefetchCounts([]string{t.Queue}, t.Limit)
		return errMissing
	}
	if stored != nil || known != nil {
		return store.AlreadyStored(t)
	}
	x.Seq++
	t.Seq, t.Rev, t.Ready = x.Seq, 1, false
	request := v.row.Request.Clone()
	if t.State.Terminal() {
		x.Place++
		t.Place = x.Place
		request.SealedEnv, t.HasEnv = nil, false
	} else {
		t.HasEnv = t.HasEnv || len(request.SealedEnv) > 0
		x.enqueue(t, t.EnqueuedAt)
		t.Ready = t.SessionID == "" && !t.NotBefore.After(v.row.Now)
	}
	r := x.insert(t, request)
	if v.row.Result != nil {
		r.result = v.row.Result.Clone()
	}
	x.settle(r, v.row.Now)
	x.note(store.RestoreEntry(r.task, v.row.Now))
	v.got = *r.task
	return nil
}
