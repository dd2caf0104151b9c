package model

import (
	"context"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/internal/store"
)

// Restore stores a task from another store.
func (s *Store) Restore(ctx context.Context, r store.Restored) (signalbox.Task, error) {
	if err := s.lock(ctx); err != nil {
		return signalbox.Task{}, err
	}
	defer s.mu.Unlock()
	if err := store.CheckRestored(&r); err != nil {
		return signalbox.Task{}, err
	}
	t := r.Task
	if s.rows[t.ID] != nil || s.known(&t) != nil {
		return signalbox.Task{}, store.AlreadyStored(&t)
	}
	s.lastSeq++
	t.Seq, t.Rev, t.Ready = s.lastSeq, 1, false
	kept := &row{request: *r.Request.Clone()}
	if t.State.Terminal() {
		s.lastPlace++
		t.Place = s.lastPlace
		kept.request.SealedEnv, t.HasEnv = nil, false
	} else {
		s.enqueue(&t, t.EnqueuedAt)
	}
	if r.Result != nil {
		kept.result = *r.Result.Clone()
	}
	kept.task = t
	s.rows[t.ID] = kept
	s.submitted.add(t.Seq, 0, kept)
	if t.IdempotencyKey != "" {
		s.keys[t.IdempotencyKey] = kept
	}
	s.list(kept)
	s.settle(kept, r.Now)
	s.note(store.RestoreEntry(&kept.task, r.Now))
	return kept.task, nil
}
