package model

import (
	"context"
	"time"
)

// Wake makes due tasks ready, earliest NotBefore first. A task that waits for an earlier turn of its session
// is not due: the end of that turn makes it ready.
func (s *Store) Wake(ctx context.Context, now time.Time, limit int) (woken []string, next time.Time, err error) {
	if err := s.lock(ctx); err != nil {
		return nil, time.Time{}, err
	}
	defer s.mu.Unlock()
	passed := s.timed.rank(now.UnixMilli()+1, 0)
	for _, p := range append([]spot(nil), s.timed.spots[:passed]...) {
		if p.row.task.Ready || !s.mayBeReady(p.row, now) {
			continue
		}
		if len(woken) >= limit {
			return woken, p.row.task.NotBefore, nil
		}
		s.settle(p.row, now)
		woken = append(woken, p.row.task.ID)
	}
	later := s.timed.rank(now.UnixMilli()+1, 0)
	if later < len(s.timed.spots) {
		next = s.timed.spots[later].row.task.NotBefore
	}
	return woken, next, nil
}
