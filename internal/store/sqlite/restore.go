package sqlite

import (
	"context"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/internal/store"
	"github.com/signalbox-ai/signalbox/internal/store/pack"
)

// Restore stores a task as another store had it.
func (s *Store) Restore(ctx context.Context, r store.Restored) (got signalbox.Task, err error) {
	rest := pack.Request(&r.Request)
	size := len(r.Request.Prompt) + len(r.Request.SealedEnv) + len(rest)
	if r.Result != nil {
		size += len(r.Result.Output) + len(r.Result.Tail)
	}
	err = s.do(ctx, size, func(w *writer) (err error) {
		got, err = w.restore(&r, rest)
		return err
	})
	if err != nil {
		return signalbox.Task{}, err
	}
	return got, nil
}

func (w *writer) restore(r *store.Restored, rest []byte) (signalbox.Task, error) {
	if err := store.CheckRestored(r); err != nil {
		return signalbox.Task{}, err
	}
	t := r.Task
	if err := w.free(&t); err != nil {
		return signalbox.Task{}, err
	}
	w.seq++
	t.Seq, t.Rev, t.Ready = w.seq, 1, false
	if t.State.Terminal() {
		w.place++
		t.Place, t.HasEnv, r.Request.SealedEnv = w.place, false, nil
	} else {
		t.HasEnv = t.HasEnv || len(r.Request.SealedEnv) > 0
		w.enqueue(&t, t.EnqueuedAt)
		t.Ready = t.SessionID == "" && due(&t, r.Now)
	}
	if err := w.insert(&t, &store.Submission{Request: r.Request}, rest); err != nil {
		return signalbox.Task{}, err
	}
	if r.Result != nil {
		q := w.write(stResultPut)
		if err := q.int(t.Seq).text(r.Result.Output).text(r.Result.Tail).bytes(pack.Result(r.Result)).run(); err != nil {
			return signalbox.Task{}, err
		}
	}
	if t.SessionID != "" { // one that has ended looks at those of its session, too
		var err error
		if t, err = w.settledRow(&t, r.Now); err != nil {
			return signalbox.Task{}, err
		}
	}
	entry := store.RestoreEntry(&t, r.Now)
	w.note(&entry)
	return t, nil
}

// free refuses a task whose id or idempotency key is taken.
func (w *writer) free(t *signalbox.Task) error {
	known, err := w.byKey(t.IdempotencyKey)
	if err == nil && known == nil {
		q := w.on(stTaskByID)
		known, err = one(q.exact(t.ID))
	}
	if err == nil && known != nil {
		err = store.Stored(t)
	}
	return err
}
