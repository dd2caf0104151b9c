package model

import (
	"context"
	"slices"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/internal/store"
)

// use adds what a run used to the row of its key.
func (s *Store) use(u signalbox.Usage) {
	if u.Spent == (signalbox.Spent{}) {
		return
	}
	key := u.UsageKey
	if _, known := s.usage[key]; !known {
		rows := int64(0)
		for other := range s.usage {
			if other.Day == u.Day {
				rows++
			}
		}
		key = u.Fold(rows)
	}
	sum := s.usage[key]
	sum.UsageKey = key
	s.usage[key] = sum.Plus(u)
}

// RestoreUsage stores a row of usage from another store.
func (s *Store) RestoreUsage(ctx context.Context, u signalbox.Usage) error {
	if err := s.lock(ctx); err != nil {
		return err
	}
	defer s.mu.Unlock()
	if _, known := s.usage[u.UsageKey]; known {
		return store.UsageStored(&u)
	}
	s.usage[u.UsageKey] = u
	return nil
}

// Usage lists rows of usage.
func (s *Store) Usage(ctx context.Context, q store.UsageQuery) (list []signalbox.Usage, err error) {
	if err := s.lock(ctx); err != nil {
		return nil, err
	}
	defer s.mu.Unlock()
	for _, u := range s.usage {
		if q.Matches(&u) {
			list = append(list, u)
		}
	}
	slices.SortFunc(list, store.ByUsageKey)
	return list, nil
}

func (s *Store) pruneUsage(before signalbox.Day) {
	for key := range s.usage {
		if key.Day < before {
			delete(s.usage, key)
		}
	}
}
