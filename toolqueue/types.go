package toolqueue

import (
	"errors"
	"time"
)

// Default is the queue of tools that name none, DefaultConcurrent its
// capacity where nobody configures queues (seed tool-queue-manager).
const (
	Default           = "default"
	DefaultConcurrent = 64
)

// Config says what a queue allows.
type Config struct {
	Concurrent int           // calls side by side, at least 1
	MaxWait    time.Duration // how long a call may wait in line; 0: as long as its context lasts
	MaxWaiters int           // how many calls may wait in line; 0: any number
	Lease      Lease         // zero: a slot is held for one call at a time
}

// Lease makes a session keep its slot from call to call, until it has been
// idle for Idle or has held it for MaxHold, whichever is first, or hands it
// on. The calls of one session in one queue then run one after the other. A
// call under way is never cut off: a lease that is over ends with it.
//
// Capacity 1 for each call alone does not keep two sessions from taking
// turns in one browser tab; a lease does.
type Lease struct {
	Idle    time.Duration // without a call; 0: no lease
	MaxHold time.Duration // from when the slot was taken; 0: no bound
}

// Who is the caller, for those who look at the queue. Session also is the key
// of a lease: calls without one never hold a lease.
type Who struct {
	Session string
	Agent   string
	Tool    string
	// Waits is called once if the call has to wait, in the goroutine that
	// called Acquire and before it waits. It must return soon.
	Waits func(Waiting)
}

// Reason says why a call got no slot.
type Reason string

// The reasons.
const (
	ReasonFull      Reason = "full"      // as many wait as may
	ReasonTimeout   Reason = "timeout"   // it waited for as long as it may
	ReasonCancelled Reason = "cancelled" // its context ended
	ReasonUnknown   Reason = "unknown_queue"
)

// The errors of Acquire, for errors.Is. What Acquire returns is an *Error,
// which has the figures. One that was cancelled is also the context's error.
var (
	ErrFull      = errors.New("the tool queue is full")
	ErrTimeout   = errors.New("waited too long in the tool queue")
	ErrCancelled = errors.New("gave up waiting in the tool queue")
	ErrUnknown   = errors.New("there is no such tool queue")
)

// Hooks are told what happens. Each may be nil. Depth is called in the order
// of the changes and with the queue locked: it must be quick and must not use
// the queue. The others are called with nothing locked.
type Hooks struct {
	Depth   func(queue string, depth int)                          // calls in line, whenever that changes
	Queued  func(queue string, who Who, depth, concurrent int)     // a call begins to wait; depth counts it
	Waited  func(queue string, who Who, wait time.Duration)        // it has waited and has got its slot
	Refused func(queue string, who Who, r Reason, d time.Duration) // it got none, after waiting for d
}

// Status is a queue at one moment.
type Status struct {
	Name       string
	Concurrent int
	InUse      int // slots that are taken, by a call or by a lease
	Depth      int // calls in line
	MaxWait    time.Duration
	MaxWaiters int
	Lease      Lease
	Holders    []Holder // one for each slot in use
	Waiters    []Waiter // in order
}

// Holder is who has a slot.
type Holder struct {
	Session, Agent, Tool string
	Since                time.Time // when the slot was taken; zero if it was not noted
	Leased               bool      // held by the session from call to call
	Idle                 bool      // a lease with no call under way
	Expires              time.Time // of a lease: when it ends if nothing happens
	Behind               int       // calls of that session that wait for their own slot
}

// Waiter is who stands in line.
type Waiter struct {
	Session, Agent, Tool string
	Since                time.Time
	Position             int // from 1
}
