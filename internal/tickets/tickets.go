// Package tickets keeps the slots and the line of shared tool queues in the
// store of the directors: it is the toolqueue.Far of a director.
//
// A session's id is as good as a password, so that the store gets what stands
// for it (Session), and so do those who look at a queue.
package tickets

import (
	"context"
	"time"

	"github.com/signalbox-ai/signalbox/internal/gateway"
	"github.com/signalbox-ai/signalbox/internal/store"
	"github.com/signalbox-ai/signalbox/toolqueue"
)

// Store is what of a store is needed.
type Store interface {
	Tickets(ctx context.Context, s store.TicketStep) ([]store.Ticket, error)
}

// Far is a toolqueue.Far over a store.
type Far struct {
	store  Store
	now    func() time.Time
	sights sights
}

var _ toolqueue.Far = (*Far)(nil)

// New keeps tickets in a store. now is the time that all directors over it go
// by.
func New(s Store, now func() time.Time) *Far { return &Far{store: s, now: now} }

// Step takes one step of a queue.
func (f *Far) Step(ctx context.Context, s toolqueue.Step) ([]toolqueue.Ticket, error) {
	now := f.now()
	rows, err := f.store.Tickets(ctx, store.TicketStep{
		Queue: s.Queue, Concurrent: s.Concurrent, MaxWaiters: s.MaxWaiters, LeaseIdle: s.Lease.Idle, LeaseHold: s.Lease.MaxHold,
		Enter: entering(&s), Leave: s.Leave, EndSessions: keys(s.EndSessions), Keep: s.Keep, Idle: s.Idle, Unused: s.Unused,
		Over: f.sights.over(s.Queue, s.Lasts), Now: now, Expires: now.Add(s.Lasts),
	})
	if err != nil {
		return nil, err
	}
	f.sights.see(s.Queue, rows)
	out := make([]toolqueue.Ticket, len(rows))
	for i := range rows {
		r := &rows[i]
		out[i] = toolqueue.Ticket{
			ID: r.ID, Owner: r.Owner, Session: r.Session, Agent: r.Agent, Tool: r.Tool, Execution: r.Execution,
			Holds: r.Fence > 0, Leased: r.Leased, Idle: !r.Idle.IsZero(), Since: r.Since, Granted: r.Granted, Ends: r.Ends,
		}
	}
	return out, nil
}

func entering(s *toolqueue.Step) []store.Ticket {
	var out []store.Ticket
	for _, t := range s.Enter {
		out = append(out, store.Ticket{
			Queue: s.Queue, ID: t.ID, Owner: t.Owner, Session: gateway.SessionKey(t.Session), Agent: t.Agent, Tool: t.Tool, Execution: t.Execution, Leased: t.Leased,
		})
	}
	return out
}

func keys(sessions []string) []string {
	var out []string
	for _, s := range sessions {
		out = append(out, gateway.SessionKey(s))
	}
	return out
}
