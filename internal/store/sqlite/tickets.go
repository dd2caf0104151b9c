package sqlite

import (
	"context"

	"github.com/signalbox-ai/signalbox/internal/store"
)

// Tickets takes one step of a shared tool queue.
func (s *Store) Tickets(ctx context.Context, step store.TicketStep) (after []store.Ticket, err error) {
	err = s.do(ctx, 0, func(w *writer) (err error) {
		after, err = w.stepTickets(&step)
		return err
	})
	if err != nil {
		return nil, err
	}
	return after, nil
}

func (w *writer) stepTickets(step *store.TicketStep) ([]store.Ticket, error) {
	before, err := w.ticketsOf(step.Queue)
	if err != nil {
		return nil, err
	}
	after, changed, place, fence := store.StepTickets(before, *step, w.ticketPlace, w.ticketFence)
	if !changed {
		return after, nil
	}
	w.ticketPlace, w.ticketFence = place, fence
	return after, w.changeTickets(before, after)
}

// changeTickets writes what differs.
func (w *writer) changeTickets(before, after []store.Ticket) error {
	stored := make(map[string]*store.Ticket, len(before))
	for i := range before {
		stored[before[i].ID] = &before[i]
	}
	for i := range after {
		t := &after[i]
		was := stored[t.ID]
		delete(stored, t.ID)
		if was != nil && *was == *t {
			continue
		}
		if err := w.putTicket(t); err != nil {
			return err
		}
	}
	for _, t := range stored {
		q := w.write(stTicketDelete)
		if err := q.exact(t.Queue).exact(t.ID).run(); err != nil {
			return err
		}
	}
	return nil
}

func (w *writer) putTicket(t *store.Ticket) error {
	q := w.write(stTicketPut)
	q.exact(t.Queue).exact(t.ID).text(t.Owner).text(t.Session).text(t.Agent).text(t.Tool).text(t.Execution)
	q.int(t.Place).int(t.Fence).time(t.Since).time(t.Granted).time(t.Expires).bool(t.Leased)
	return q.time(t.Idle).time(t.Ends).bool(t.Used).bool(t.Over).run()
}

// ticketsOf returns the tickets of a tool queue, by ID.
func (c *conn) ticketsOf(queue string) (list []store.Ticket, err error) {
	q := c.on(stTicketsOf)
	q.exact(queue)
	for q.next() {
		list = append(list, store.Ticket{
			Queue: q.textAt(0), ID: q.textAt(1), Owner: q.textAt(2), Session: q.textAt(3), Agent: q.textAt(4), Tool: q.textAt(5),
			Execution: q.textAt(6), Place: q.intAt(7), Fence: q.intAt(8), Since: q.timeAt(9), Granted: q.timeAt(10),
			Expires: q.timeAt(11), Leased: q.boolAt(12), Idle: q.timeAt(13), Ends: q.timeAt(14),
			Used: q.boolAt(15), Over: q.boolAt(16),
		})
	}
	return list, q.end()
}
