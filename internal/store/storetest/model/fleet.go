package model

import (
	"context"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/internal/store"
)

// PutAgent stores an agent by name. CreatedAt is kept from the first time.
func (s *Store) PutAgent(ctx context.Context, a signalbox.Agent, e signalbox.Entry) error {
	if err := s.lock(ctx); err != nil {
		return err
	}
	defer s.mu.Unlock()
	was, known := s.agents[a.Name]
	if known {
		a.CreatedAt = was.CreatedAt
	}
	if known && store.SameAgent(&a, &was) {
		return nil
	}
	s.agents[a.Name] = copyAgent(a)
	s.note(e)
	return nil
}

// RemoveAgent deletes an agent that holds no slots.
func (s *Store) RemoveAgent(ctx context.Context, name string, e signalbox.Entry) error {
	if err := s.lock(ctx); err != nil {
		return err
	}
	defer s.mu.Unlock()
	if _, known := s.agents[name]; !known {
		return signalbox.Errorf(signalbox.CodeNotFound, "there is no agent %q", name)
	}
	if n := len(s.slots[name]); n > 0 {
		return signalbox.Errorf(signalbox.CodeConflict, "agent %q still holds %d slots: release them first", name, n)
	}
	delete(s.agents, name)
	s.directors.removed(name)
	s.note(e)
	return nil
}

// SetPause pauses or changes the pause of a queue.
func (s *Store) SetPause(ctx context.Context, p signalbox.Pause, e signalbox.Entry) error {
	if err := s.lock(ctx); err != nil {
		return err
	}
	defer s.mu.Unlock()
	s.pauses[p.Queue] = p
	s.note(e)
	return nil
}

// Resume ends the pause of a queue. The entry is written if there was one.
func (s *Store) Resume(ctx context.Context, queue string, e signalbox.Entry) (was bool, err error) {
	if err := s.lock(ctx); err != nil {
		return false, err
	}
	defer s.mu.Unlock()
	if _, was = s.pauses[queue]; was {
		delete(s.pauses, queue)
		s.note(e)
	}
	return was, nil
}

// Note writes a journal entry without a change.
func (s *Store) Note(ctx context.Context, e signalbox.Entry) error {
	if err := s.lock(ctx); err != nil {
		return err
	}
	defer s.mu.Unlock()
	s.note(e)
	return nil
}
