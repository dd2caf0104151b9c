package toolqueue

import (
	"context"
	"time"
)

// Queues are the named queues of a process. Make one with New; all methods
// are safe for use from several goroutines.
type Queues struct{}

// New returns Queues without a queue.
func New(Hooks) *Queues { panic("being built") }

// Configure makes the queues that are not there yet and raises the bounds of
// those that are: the greater value stands for each field, and what is smaller
// or zero changes nothing. A raised capacity lets waiting calls in at once. A
// mistake is reported and changes nothing.
func (q *Queues) Configure(map[string]Config) error { panic("being built") }

// Acquire takes a slot of a queue, waiting in line where none is free. The
// error is an *Error; after one, there is nothing to release.
func (q *Queues) Acquire(ctx context.Context, queue string, who Who) (Permit, error) {
	panic("being built")
}

// AcquireWithin is Acquire with a bound on the wait, where it is shorter than
// the queue's own. 0 is no bound.
func (q *Queues) AcquireWithin(ctx context.Context, queue string, who Who, maxWait time.Duration) (Permit, error) {
	panic("being built")
}

// EndSession ends all leases of a session and hands their slots on. One whose
// call is under way ends with that call.
func (q *Queues) EndSession(session string) { panic("being built") }

// Status is a queue at this moment, with at most maxWaiters of its waiters.
func (q *Queues) Status(queue string, maxWaiters int) (Status, bool) { panic("being built") }

// All is the Status of all queues, by name.
func (q *Queues) All(maxWaiters int) []Status { panic("being built") }

// Permit is the right to one slot, for one call. The zero Permit holds none.
type Permit struct{}

// Release gives the slot back, or to the session's lease. It may be called
// more than once, also of a copy: only the first counts.
func (p Permit) Release() { panic("being built") }

// Waiting is a call that stands in line.
type Waiting struct{}

// Position is its place in line, from 1, or 0 once it no longer waits.
func (w Waiting) Position() int { panic("being built") }

// Error is why a call got no slot.
type Error struct {
	Queue      string
	Reason     Reason
	Waited     time.Duration
	Depth      int // calls in line, without this one
	Concurrent int
	Err        error // one of the package's errors, joined with the context's
}

func (e *Error) Error() string { panic("being built") }

func (e *Error) Unwrap() error { return e.Err }
