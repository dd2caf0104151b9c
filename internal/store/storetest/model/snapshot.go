package model

import (
	"context"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/internal/store"
)

// Snapshot returns what waits and runs at one moment.
func (s *Store) Snapshot(ctx context.Context, heads int) (store.Snapshot, error) {
	if err := s.lock(ctx); err != nil {
		return store.Snapshot{}, err
	}
	defer s.mu.Unlock()
	shot := store.Snapshot{
		Entry: s.lastEntry, Counts: s.counts(), InFlight: tasks(s.inFlight.spots, len(s.inFlight.spots)),
		Slots: s.slotRows(), Pauses: s.pauseRows(), Heads: map[string][]signalbox.Task{},
	}
	if heads > 0 {
		for queue, l := range s.waiting {
			shot.Heads[queue] = tasks(l.spots, heads)
		}
	}
	return shot, nil
}
