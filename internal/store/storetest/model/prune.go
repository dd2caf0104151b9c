package model

import (
	"context"
	"slices"
	"time"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/internal/store"
)

// Prune deletes ended tasks, oldest first, and sessions that are unused since and that no task names any
// more.
func (s *Store) Prune(ctx context.Context, p store.Pruning) (store.Pruned, error) {
	if err := s.lock(ctx); err != nil {
		return store.Pruned{}, err
	}
	defer s.mu.Unlock()
	var ended []*signalbox.Task
	for _, at := range s.ended.after(p.After.EndedMS, p.After.Seq) {
		if len(ended) >= p.Limit || at.key >= p.Before() {
			break
		}
		ended = append(ended, &at.row.task)
	}
	going, done := p.Choose(ended)
	for _, t := range going {
		s.forget(s.rows[t.ID])
	}
	s.pruneSessions(p.Ended)
	s.pruneJournal(p.Ended)
	if !p.Ended.IsZero() {
		s.pruneUsage(p.Usage)
	}
	return done, nil
}

// Kept returns how many bytes ended tasks take, by owner.
func (s *Store) Kept(ctx context.Context) (map[string]int64, error) {
	if err := s.lock(ctx); err != nil {
		return nil, err
	}
	defer s.mu.Unlock()
	kept := map[string]int64{}
	for _, at := range s.ended.spots {
		if size := at.row.task.Kept(); size != 0 {
			kept[at.row.task.Owner] += size
		}
	}
	return kept, nil
}

func (s *Store) forget(r *row) {
	s.unlist(r)
	s.submitted.remove(r.task.Seq, 0)
	delete(s.rows, r.task.ID)
	if r.task.IdempotencyKey != "" {
		delete(s.keys, r.task.IdempotencyKey)
	}
}

func (s *Store) pruneSessions(unused time.Time) {
	named := map[string]bool{}
	for _, r := range s.rows {
		named[r.task.SessionID] = true
	}
	for id, held := range s.sessions {
		if held.LastUsed.Before(unused) && !named[id] {
			delete(s.sessions, id)
		}
	}
}

// pruneJournal deletes only the beginning: the rest must have no gaps, even if the clock went back in
// between.
func (s *Store) pruneJournal(older time.Time) {
	keep := slices.IndexFunc(s.journal, func(e signalbox.Entry) bool { return !e.At.Before(older) })
	if keep < 0 {
		keep = len(s.journal)
	}
	s.journal = slices.Clone(s.journal[keep:])
}
