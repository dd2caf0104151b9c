package toolqueue

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"time"
)

// Reason is why a call got no slot.
type Reason string

// The reasons.
const (
	ReasonFull        Reason = "full"      // the queue has MaxWaiters waiters
	ReasonTimeout     Reason = "timeout"   // its maximum wait is over
	ReasonCancelled   Reason = "cancelled" // its context ended
	ReasonUnknown     Reason = "unknown_queue"
	ReasonUnavailable Reason = "away" // the backend of a shared queue does not answer
)

// The errors of Acquire, for errors.Is. Acquire returns an *Error with the figures. A
// cancelled call's error also matches the context's error.
var (
	ErrFull        = errors.New("the tool queue is full")
	ErrTimeout     = errors.New("waited too long in the tool queue")
	ErrCancelled   = errors.New("gave up waiting in the tool queue")
	ErrUnknown     = errors.New("there is no such tool queue")
	ErrUnavailable = errors.New("the slots of the shared tool queue are out of reach")
)

var (
	errNoAnswer = errors.New("no answer came in time")
	errKeys     = fmt.Errorf("%w: it has calls of too many keys", ErrFull)
	errClosed   = errors.New("this process gives its slots back, because it ends")
)

// Error is the error of Acquire.
type Error struct {
	Queue      string
	Reason     Reason
	Waited     time.Duration
	Depth      int // other waiting calls
	Concurrent int
	Held       Held  // what blocked the call, other than the slots
	Err        error // one of the package's errors, joined with the context's
}

// Error says what happened, with the figures, and what to do about it.
func (e *Error) Error() string {
	switch e.Reason {
	case ReasonFull:
		if errors.Is(e.Err, errKeys) {
			return fmt.Sprintf("tool queue %q has calls of %d keys, each with limits of its own, and keeps no more: call again later", e.Queue, MaxKeys)
		}
		return fmt.Sprintf("tool queue %q is full: %s in line for its %s, and no more may wait; call again later, or raise its maximum number of waiters",
			e.Queue, count(e.Depth, "call"), count(e.Concurrent, "slot"))
	case ReasonTimeout:
		if e.Held != (Held{}) {
			return fmt.Sprintf("waited %s in tool queue %q, %s (others in line: %d); call again then", formatDuration(e.Waited), e.Queue, e.Held, e.Depth)
		}
		if e.Waited == 0 {
			return fmt.Sprintf("no slot of the %s of tool queue %q is free, and the call was not to wait (in line: %d); call again later, or give it time to wait",
				count(e.Concurrent, "slot"), e.Queue, e.Depth)
		}
		return fmt.Sprintf("waited %s for %s of tool queue %q, as long as it may (others in line: %d); call again later, or raise its capacity or its maximum wait",
			formatDuration(e.Waited), oneOf(e.Concurrent), e.Queue, e.Depth)
	case ReasonUnknown:
		return fmt.Sprintf("there is no tool queue %q: add it to the queues, or bind the tool to one that is there", e.Queue)
	case ReasonUnavailable:
		return fmt.Sprintf("no answer for %s about a slot of tool queue %q, which is shared with other processes: the backend of its slots cannot be reached, or this process is ending; call again later",
			formatDuration(e.Waited), e.Queue)
	}
	return fmt.Sprintf("gave up after %s in line for %s of tool queue %q (others in line: %d): the call was cancelled or its time was over",
		formatDuration(e.Waited), oneOf(e.Concurrent), e.Queue, e.Depth)
}

// String says what blocks a call and until when, such as "which is closed until 14:00:03 UTC:
// the server answered 429".
func (h Held) String() string {
	at := h.Until.UTC().Format(time.TimeOnly + " UTC")
	switch {
	case h.Until.IsZero():
		return "whose slots are all taken"
	case h.Closed && h.Why != "":
		return "which is closed until " + at + ": " + h.Why
	case h.Closed:
		return "which is closed until " + at
	}
	return "whose rate lets it start at " + at
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

// formatDuration rounds a duration for people.
func formatDuration(d time.Duration) string {
	if d < time.Second {
		return d.Round(time.Millisecond).String()
	}
	return d.Round(100 * time.Millisecond).String()
}

// cancelled joins ErrCancelled with the context's error and its cause, if any.
func cancelled(ctx context.Context) error {
	err, cause := ctx.Err(), context.Cause(ctx)
	if errors.Is(cause, err) {
		return errors.Join(ErrCancelled, cause)
	}
	return errors.Join(ErrCancelled, err, cause)
}

// DefaultTicketLease is how long a ticket lasts without renewal. The slots of a dead process are
// free after that time.
const DefaultTicketLease = 15 * time.Second

// SharedBackend stores the holders and waiters of queues that several processes share: one
// ticket per call that waits or holds a slot, never a counter.
type SharedBackend interface {
	// Step executes one atomic step of a queue, and returns its state after it. The step does,
	// in this order:
	//
	//   - removes tickets that have expired, and idle ones whose lease is over;
	//   - removes those of Leave, and ends the leases of the sessions of EndSessions, those with
	//     a running call with that call;
	//   - renews those of Keep for Lasts from now; ends the calls of Idle and of Unused, but keeps
	//     an idle lease for which a call waits;
	//   - closes or opens the keys of Gates, each until the later time;
	//   - assigns slots to waiters: first come, first served, but a session that holds a slot
	//     only gets that one. A start takes a token of its key's bucket (Rate.Take), and a
	//     key that is closed or has no token starts no call;
	//   - queues Enter one after another. A ticket that cannot start is not among the returned
	//     tickets if there is no room to wait or if its key exceeds MaxKeys.
	//
	// Concurrent, MaxWaiters and Rate apply to each key separately.
	//
	// Unknown IDs are ignored, and so is an Enter of a ticket that exists: after an error the
	// outcome is unknown, and the step is repeated.
	Step(ctx context.Context, s Step) (Snapshot, error)
}

// Step is a request of a process for a shared queue.
type Step struct {
	Queue      string
	Concurrent int // slots
	MaxWaiters int // 0: no limit
	Lease      Lease
	Rate       Rate

	Enter       []Ticket // ID, Owner, Session, Agent, Tool, Execution, Key and Leased are set
	Leave       []string // IDs, as below
	Keep        []string
	Idle        []string // leased ones whose call ended
	Unused      []string // leased ones whose call never ran: they start no lease
	EndSessions []string
	Gates       []SharedGate
	Lasts       time.Duration // lifetime of the tickets of Enter and Keep
}

// Ticket is a call that waits for or holds a slot of a shared queue.
type Ticket struct {
	ID    string // never reused
	Owner string // the process that renews it
	// Session is that of Who or a stand-in: it is equal for the calls of one session.
	Session, Agent, Tool, Execution string
	Key                             string // Who.Key, if each key has limits of its own

	Holds   bool
	Leased  bool      // its session keeps the slot between calls
	Idle    bool      // no call runs in it
	Since   time.Time // when it was queued
	Granted time.Time // when its slot was taken; for a lease, by its first call
	Ends    time.Time // when its lease ends unless a call runs; zero: never
}

// Sharing configures shared queues.
type Sharing struct {
	Backend SharedBackend
	Owner   string // this process, shown as Holder.Owner
	// Lease is the lifetime of a ticket without renewal; 0: DefaultTicketLease. Tickets are
	// renewed every third of it. A process that could not renew one for four fifths of it
	// counts it as lost (Permit.Lost), before another process can have its slot.
	Lease time.Duration
}

// Share enables sharing for queues configured with Shared from now on. Without it, they are
// local.
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

// Notify signals that another process may have changed a shared queue: waiting calls poll at
// once. It does not block.
func (q *Queues) Notify() {
	for _, in := range q.queues.Load().list {
		if in.shared != nil {
			in.shared.signal()
		}
	}
}

// Close releases what this process holds of shared queues and ends its waits. It returns when
// the backend knows, or with ctx. Local queues continue to work.
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
