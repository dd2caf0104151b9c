package model

import (
	"context"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/internal/store"
)

func (s *Store) countSlot(row *signalbox.Slot, n int) {
	sort := store.SlotSort(signalbox.Isolated(row.Slot))
	if !signalbox.IsExecutor(row.Agent) {
		s.inUse[sort] += n
	}
	if s.used[sort][row.Agent] += n; s.used[sort][row.Agent] == 0 {
		delete(s.used[sort], row.Agent)
	}
}

func (s *Store) takeSlot(row signalbox.Slot) {
	s.countSlot(&row, 1)
	if s.slots[row.Agent] == nil {
		s.slots[row.Agent] = map[int]*signalbox.Slot{}
	}
	s.slots[row.Agent][row.Slot] = &row
}

// slot returns a slot row, if it still has that fence.
func (s *Store) slot(agent string, slot int, fence int64) *signalbox.Slot {
	if row := s.slots[agent][slot]; row != nil && row.Fence == fence {
		return row
	}
	return nil
}

func (s *Store) dropSlot(row *signalbox.Slot) {
	s.countSlot(row, -1)
	delete(s.slots[row.Agent], row.Slot)
	if len(s.slots[row.Agent]) == 0 {
		delete(s.slots, row.Agent)
	}
}

// applySlot applies the change to the task's slot, unless the slot is gone or has another fence.
func (s *Store) applySlot(c *signalbox.Change) {
	row := s.slot(c.Task.Agent, c.Task.Slot, c.Task.Fence)
	if row == nil {
		return
	}
	switch c.Slot {
	case signalbox.SlotFree:
		s.dropSlot(row)
	case signalbox.SlotWithhold:
		row.Withheld = true
	}
}

// Renew extends slot leases and returns how many of them exist.
func (s *Store) Renew(ctx context.Context, leases []store.Lease) (int, error) {
	if err := s.lock(ctx); err != nil {
		return 0, err
	}
	defer s.mu.Unlock()
	renewed := 0
	for _, l := range leases {
		if row := s.slot(l.Agent, l.Slot, l.Fence); row != nil {
			row.Expires = l.Expires
			renewed++
		}
	}
	return renewed, nil
}

// FreeSlot removes a withheld slot row, if it still has that fence.
func (s *Store) FreeSlot(ctx context.Context, agent string, slot int, fence int64) (bool, error) {
	if err := s.lock(ctx); err != nil {
		return false, err
	}
	defer s.mu.Unlock()
	row := s.slot(agent, slot, fence)
	if row == nil || !row.Withheld {
		return false, nil
	}
	s.dropSlot(row)
	return true, nil
}
