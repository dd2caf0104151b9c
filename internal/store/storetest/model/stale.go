package model

import (
	"cmp"
	"context"
	"slices"

	"github.com/signalbox-ai/signalbox"
)

// KeepStale keeps what a void execution of a task said, by its fence.
func (s *Store) KeepStale(ctx context.Context, id string, said signalbox.Stale) error {
	if err := s.lock(ctx); err != nil {
		return err
	}
	defer s.mu.Unlock()
	r, err := s.find(id)
	if err != nil {
		return err
	}
	said.Result = *said.Result.Clone()
	n, again := slices.BinarySearchFunc(r.stales, said, func(a, b signalbox.Stale) int { return cmp.Compare(a.Fence, b.Fence) })
	if again {
		r.stales[n] = said
		return nil
	}
	r.stales = slices.Insert(r.stales, n, said)
	r.stales = r.stales[max(0, len(r.stales)-signalbox.MaxStale):]
	return nil
}

// Stales lists what void executions of a task said, by fence.
func (s *Store) Stales(ctx context.Context, id string) ([]signalbox.Stale, error) {
	if err := s.lock(ctx); err != nil {
		return nil, err
	}
	defer s.mu.Unlock()
	r, err := s.find(id)
	if err != nil {
		return nil, err
	}
	return copyStales(r.stales), nil
}

func copyStales(stales []signalbox.Stale) []signalbox.Stale {
	list := slices.Clone(stales)
	for i := range list {
		list[i].Result = *list[i].Result.Clone()
	}
	return list
}

// Children lists the tasks that the execution of a task called, by Seq.
func (s *Store) Children(ctx context.Context, id string, limit int) ([]signalbox.Task, error) {
	if err := s.lock(ctx); err != nil {
		return nil, err
	}
	defer s.mu.Unlock()
	var list []signalbox.Task
	for _, p := range s.submitted.spots {
		if len(list) >= limit {
			break
		}
		if t := &p.row.task; id != "" && t.ParentID == id {
			list = append(list, *t)
		}
	}
	return list, nil
}
