package model

import (
	"context"
	"slices"

	"github.com/signalbox-ai/signalbox/internal/store"
)

// Tickets takes one step of a shared tool queue.
func (s *Store) Tickets(ctx context.Context, step store.TicketStep) (store.ToolLine, error) {
	if err := s.lock(ctx); err != nil {
		return store.ToolLine{}, err
	}
	defer s.mu.Unlock()
	rows, changed, place, fence := store.StepTickets(s.tickets[step.Queue], step, s.ticketPlace, s.ticketFence)
	if changed {
		s.ticketPlace, s.ticketFence = place, fence
		s.tickets[step.Queue] = store.ToolLine{Tickets: slices.Clone(rows.Tickets), Limits: slices.Clone(rows.Limits)}
	}
	if len(rows.Tickets)+len(s.tickets[step.Queue].Limits) == 0 {
		delete(s.tickets, step.Queue)
	}
	return rows, nil
}
