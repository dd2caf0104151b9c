package memory

import (
	"context"
	"slices"
	"time"

	"github.com/signalbox-ai/signalbox"
)

// Prune forgets tasks that ended before ended, oldest first, and with them
// sessions that nobody has used since and that no task belongs to any more.
func (s *Store) Prune(ctx context.Context, ended time.Time, limit int) (int, error) {
	if err := s.lock(ctx); err != nil {
		return 0, err
	}
	defer s.mu.Unlock()
	n := max(0, min(limit, s.ended.rank(ended.UnixMilli(), 0)))
	for _, p := range append([]spot(nil), s.ended.spots[:n]...) {
		s.forget(p.row)
	}
	s.pruneSessions(ended)
	s.pruneJournal(ended)
	return n, nil
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

// pruneJournal cuts the beginning only: what is left must have no gaps, even
// where the clock went back in between.
func (s *Store) pruneJournal(older time.Time) {
	keep := slices.IndexFunc(s.journal, func(e signalbox.Entry) bool { return !e.At.Before(older) })
	if keep < 0 {
		keep = len(s.journal)
	}
	s.journal = slices.Clone(s.journal[keep:])
}
