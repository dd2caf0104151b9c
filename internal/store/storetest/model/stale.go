package model

import (
	"context"
	"slices"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/internal/store"
)

// KeepStale stores the final report of a void execution, by its fence.
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
	list, used := store.AddStale(r.stales, &r.task, said)
	r.stales = list
	s.use(used)
	return nil
}

// Stales lists the final reports of void executions of a task, by fence.
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
