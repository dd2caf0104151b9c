package toolqueue

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"time"
)

// Reason says why a call got no slot.
type Reason string

// The reasons.
const (
	ReasonFull      Reason = "full"      // as many wait as may
	ReasonTimeout   Reason = "timeout"   // it waited for as long as it may
	ReasonCancelled Reason = "cancelled" // its context ended
	ReasonUnknown   Reason = "unknown_queue"
	ReasonAway      Reason = "away" // a shared queue's slots are kept where nobody answers
)

// The errors of Acquire, for errors.Is. What Acquire returns is an *Error,
// which has the figures. One that was cancelled is also the context's error.
var (
	ErrFull      = errors.New("the tool queue is full")
	ErrTimeout   = errors.New("waited too long in the tool queue")
	ErrCancelled = errors.New("gave up waiting in the tool queue")
	ErrUnknown   = errors.New("there is no such tool queue")
	ErrAway      = errors.New("the slots of the shared tool queue are out of reach")
)

var (
	errSilent = errors.New("no answer came in time")
	errClosed = errors.New("this process gives its slots back, because it ends")
)

// Error is why a call got no slot.
type Error struct {
	Queue      string
	Reason     Reason
	Waited     time.Duration
	Depth      int // calls that wait, without this one
	Concurrent int
	Err        error // one of the package's errors, joined with the context's
}

// Error says what happened, with the figures, and what to do about it.
func (e *Error) Error() string {
	switch e.Reason {
	case ReasonFull:
		return fmt.Sprintf("tool queue %q is full: %s in line for its %s, and no more may wait; call again later, or raise its maximum number of waiters",
			e.Queue, count(e.Depth, "call"), count(e.Concurrent, "slot"))
	case ReasonTimeout:
		if e.Waited == 0 {
			return fmt.Sprintf("no slot of the %s of tool queue %q is free, and the call was not to wait (in line: %d); call again later, or give it time to wait",
				count(e.Concurrent, "slot"), e.Queue, e.Depth)
		}
		return fmt.Sprintf("waited %s for %s of tool queue %q, as long as it may (others in line: %d); call again later, or raise its capacity or its maximum wait",
			brief(e.Waited), oneOf(e.Concurrent), e.Queue, e.Depth)
	case ReasonUnknown:
		return fmt.Sprintf("there is no tool queue %q: add it to the queues, or bind the tool to one that is there", e.Queue)
	case ReasonAway:
		return fmt.Sprintf("no word for %s about a slot of tool queue %q, which is shared with other processes: what keeps its slots cannot be reached, or this process ends; call again later",
			brief(e.Waited), e.Queue)
	}
	return fmt.Sprintf("gave up after %s in line for %s of tool queue %q (others in line: %d): the call was cancelled or its time was over",
		brief(e.Waited), oneOf(e.Concurrent), e.Queue, e.Depth)
}

// Unwrap returns Err.
func (e *Error) Unwrap() error { return e.Err }

func oneOf(slots int) string {
	if slots == 1 {
		return "the only slot"
	}
	return "one of the " + count(slots, "slot")
}

func count(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

// brief is a duration as people say it.
func brief(d time.Duration) string {
	if d < time.Second {
		return d.Round(time.Millisecond).String()
	}
	return d.Round(100 * time.Millisecond).String()
}

// cancelled joins our word with the context's own error, and with the cause
// that was given to it, if there is one.
func cancelled(ctx context.Context) error {
	err, cause := ctx.Err(), context.Cause(ctx)
	if errors.Is(cause, err) {
		return errors.Join(ErrCancelled, cause)
	}
	return errors.Join(ErrCancelled, err, cause)
}

// DefaultTicketLease is how long a ticket lasts without renewal: what a dead process held
// is free after that time.
const DefaultTicketLease = 15 * time.Second

// SharedBackend stores the holders and waiters of queues that several processes share: one
// ticket per call that waits or holds a slot, never a counter.
type SharedBackend interface {
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
	Backend SharedBackend
	Owner   string // this process, for people: Holder.Owner
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
	case s.Backend == nil:
		return errors.New("tool queues cannot be shared: Backend is missing, which keeps the slots")
	case s.Lease < 0 || s.Lease > 0 && s.Lease < 100*time.Millisecond:
		return fmt.Errorf("tool queues cannot be shared: a ticket's lease of %s is too short; it must be 100ms or more, or 0 for %s", s.Lease, DefaultTicketLease)
	}
	s.Lease = cmp.Or(s.Lease, DefaultTicketLease)
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
