// Package tickets keeps the slots and waiters of shared tool queues in the directors'
// store: it implements toolqueue.SharedBackend.
//
// A session id is as secret as a password, so the store, and callers that list a queue, get a key derived
// from it (gateway.SessionKey).
package tickets

import (
	"context"
	"time"

	"github.com/signalbox-ai/signalbox/internal/gateway"
	"github.com/signalbox-ai/signalbox/internal/store"
	"github.com/signalbox-ai/signalbox/toolqueue"
)

// Store is the part of a store that is needed.
type Store interface {
	Tickets(ctx context.Context, s store.TicketStep) (store.ToolLine, error)
}

// Backend is a toolqueue.SharedBackend over a store.
type Backend struct {
	store  Store
	now    func() time.Time
	expiry expiryTracker
}

var _ toolqueue.SharedBackend = (*Backend)(nil)

// New returns a Backend over a store. now is the clock shared by all directors.
func New(s Store, now func() time.Time) *Backend { return &Backend{store: s, now: now} }

// Step implements toolqueue.SharedBackend.
func (f *Backend) Step(ctx context.Context, s toolqueue.Step) (toolqueue.Snapshot, error) {
	now := f.now()
	line, err := f.store.Tickets(ctx, store.TicketStep{
		Queue: s.Queue, Concurrent: s.Concurrent, MaxWaiters: s.MaxWaiters, MaxKeys: toolqueue.MaxKeys, Take: take(s.Rate), Gates: gates(s.Gates, now), LeaseIdle: s.Lease.Idle, LeaseHold: s.Lease.MaxHold,
		Enter: entering(&s), Leave: s.Leave, EndSessions: keys(s.EndSessions), Keep: s.Keep, Idle: s.Idle, Unused: s.Unused,
		Over: f.expiry.expired(s.Queue, s.Lasts), Now: now, Expires: now.Add(s.Lasts),
	})
	if err != nil {
		return toolqueue.Snapshot{}, err
	}
	rows := line.Tickets
	f.expiry.record(s.Queue, rows)
	out := make([]toolqueue.Ticket, len(rows))
	for i := range rows {
		r := &rows[i]
		out[i] = toolqueue.Ticket{
			ID: r.ID, Owner: r.Owner, Session: r.Session, Agent: r.Agent, Tool: r.Tool, Execution: r.Execution, Key: r.Key,
			Holds: r.Fence > 0, Leased: r.Leased, Idle: !r.Idle.IsZero(), Since: r.Since, Granted: r.Granted, Ends: r.Ends,
		}
	}
	limits := make([]toolqueue.SharedLimit, len(line.Limits))
	for i, l := range line.Limits {
		limits[i] = toolqueue.SharedLimit{Key: l.Key, Full: time.Unix(0, int64(l.Full)), Closed: toolqueue.Closing{Until: l.Closed, Why: l.Why, Since: l.Since}}
	}
	return toolqueue.Snapshot{Tickets: out, Limits: limits, Now: now}, nil
}

// take returns the function with which a store takes a token of a rate; nil if there is no rate.
func take(r toolqueue.Rate) func(full, now time.Duration) (time.Duration, bool) {
	if r.N == 0 {
		return nil
	}
	return r.Take
}

func gates(list []toolqueue.SharedGate, now time.Time) (out []store.ToolGate) {
	for _, g := range list {
		to := store.ToolGate{Key: g.Key}
		if g.Close > 0 {
			to.Until, to.Why = now.Add(g.Close), g.Why
		}
		out = append(out, to)
	}
	return out
}

func entering(s *toolqueue.Step) []store.Ticket {
	var out []store.Ticket
	for _, t := range s.Enter {
		out = append(out, store.Ticket{
			Queue: s.Queue, ID: t.ID, Owner: t.Owner, Session: gateway.SessionKey(t.Session), Agent: t.Agent, Tool: t.Tool, Execution: t.Execution, Key: t.Key, Leased: t.Leased,
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
