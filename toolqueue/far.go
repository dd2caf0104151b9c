package toolqueue

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"time"
)

// DefaultTicketLease is how long a ticket lasts that nobody keeps: what a
// process held that died is free after that time.
const DefaultTicketLease = 15 * time.Second

// Far keeps the slots and the line of the queues that several processes
// share, in a place that all of them reach: a ticket for each call that waits
// or holds a slot, never a counter.
type Far interface {
	// Step takes one atomic step of a queue, and returns its tickets after it: holders in the order in which they got
	// their slots, then those in line, in order. The step is, in this order:
	//
	//   - tickets that nobody kept for as long as they last go, and idle ones
	//     whose lease is over;
	//   - those of Leave go, and the leases of the sessions of EndSessions end,
	//     those with a call under way with that call;
	//   - those of Keep last for Lasts from now; the calls of Idle end, and
	//     those of Unused;
	//   - slots are given to those in line: first come, first served, where a
	//     session that holds a slot gets that and no other;
	//   - Enter lines up, one after the other: who finds neither a slot nor a
	//     place in line is not among the tickets afterwards.
	//
	// What names a ticket that is not there does nothing, nor does an Enter of
	// one that is there: after an error nobody knows whether the step was
	// taken, and it is taken again.
	Step(ctx context.Context, s Step) ([]Ticket, error)
}

// Step is what a process does in a shared queue.
type Step struct {
	Queue      string
	Concurrent int // slots
	MaxWaiters int // 0: any number
	Lease      Lease

	Enter       []Ticket // ID, Owner, Session, Agent, Tool, Execution and Leased are given
	Leave       []string // IDs, as in what follows
	Keep        []string
	Idle        []string // leased ones whose call ended
	Unused      []string // the same of calls that made no use of their slot: they leave no lease where there was none
	EndSessions []string
	Lasts       time.Duration // how long those of Enter and Keep last
}

// Ticket is a call that waits for a slot of a shared queue, or has one.
type Ticket struct {
	ID    string // no other ticket ever has it
	Owner string // the process that keeps it
	// Session is that of Who or stands for it: it is equal for the calls of one
	// session.
	Session, Agent, Tool, Execution string

	Holds   bool
	Leased  bool      // its session keeps the slot from call to call
	Idle    bool      // no call is under way in it
	Since   time.Time // it lined up
	Granted time.Time // its slot was taken: of a lease, by its first call
	Ends    time.Time // its lease ends unless a call is under way; zero: never
}

// Sharing says how a process shares queues with others.
type Sharing struct {
	Far   Far
	Owner string // this process, for people: Holder.Owner
	// Lease is how long a ticket lasts that is not kept; 0: DefaultTicketLease.
	// It is kept every third of that time. A process that could not keep one
	// for four fifths of it counts it as lost (Permit.Lost), before any other
	// process can have its slot.
	Lease time.Duration
}

// Share has the queues that are configured with Shared from now on share their
// slots and their line with other processes. Without it, they are as any other.
func (q *Queues) Share(s Sharing) error {
	switch {
	case s.Far == nil:
		return errors.New("tool queues cannot be shared: Far is missing, which keeps the slots")
	case s.Lease < 0 || s.Lease > 0 && s.Lease < 100*time.Millisecond:
		return fmt.Errorf("tool queues cannot be shared: a ticket's lease of %s is too short; it must be 100ms or more, or 0 for %s", s.Lease, DefaultTicketLease)
	}
	if s.Lease == 0 {
		s.Lease = DefaultTicketLease
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	q.sharing, q.process = &s, rand.Text()[:16]
	return nil
}

// Stir says that another process may have done something in a shared queue:
// those who wait here look at once. It does not block.
func (q *Queues) Stir() {
	for _, in := range q.queues.Load().list {
		if in.shared != nil {
			in.shared.stir()
		}
	}
}

// Close gives back what this process has of shared queues, where nobody else
// would before it runs out, and ends their waits. It returns when all is told,
// or with ctx. Queues of this process alone go on.
func (q *Queues) Close(ctx context.Context) error {
	var open []*shared
	for _, in := range q.queues.Load().list {
		if in.shared != nil {
			in.shared.close()
			open = append(open, in.shared)
		}
	}
	for _, s := range open {
		if err := s.idle(ctx); err != nil {
			return fmt.Errorf("tool queue %q: its slots could not be given back, and are free in %s: %w", s.queue.name, s.lease, err)
		}
	}
	return nil
}
