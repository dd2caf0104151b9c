package toolqueue

import "time"

// Default is the name of the queue of tools that name none, DefaultConcurrent
// the capacity that Signalbox gives it where nobody configures queues (seed
// tool-queue-manager). New makes neither: pass them to Configure.
const (
	Default           = "default"
	DefaultConcurrent = 64
)

// Config says what a queue allows.
type Config struct {
	Concurrent int           // calls side by side, at least 1
	MaxWait    time.Duration // how long a call may wait; 0: as long as its context lasts
	MaxWaiters int           // how many calls may wait; 0: any number
	Lease      Lease         // zero: a slot is held for one call at a time
	// Shared says that the slots and the line are those of several processes
	// (Queues.Share). Where this process shares none, it says nothing.
	Shared bool
}

// Lease makes a session keep its slot from call to call, until it has been
// idle for Idle or has held it for MaxHold, whichever is first, or hands it
// on. The calls of one session in one queue then run one after the other. A
// call under way is never cut off: a lease that is over ends with it, and the
// session's calls that waited for it queue anew, at the back.
//
// A call that waits behind another of its own session waits as any other: the
// queue's bounds hold for it, and the depth counts it.
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
	// Execution names the piece of work that the call is a part of.
	Execution string
	// Since is when the call began, if the caller knows: reading a clock costs
	// more than taking a free slot. It is what Holder shows of a call that did
	// not have to wait; for one that did, the queue has read its own clock.
	Since time.Time
	// Waits is called once if the call has to wait, in the goroutine that
	// called Acquire and before it waits. It must return soon.
	Waits func(Waiting)
}

// Hooks are told what happens. Each may be nil. Depth is called in the order
// of the changes and with the queue locked: it must be quick and must not use
// the queue. The others are called with nothing locked. Of a shared queue they
// are told what happens to the calls of this process; the depth that Queued is
// told is that of all.
type Hooks struct {
	Depth   func(queue string, depth int)                          // calls that wait, whenever that changes
	Queued  func(queue string, who Who, depth, concurrent int)     // a call begins to wait; depth counts it
	Waited  func(queue string, who Who, wait time.Duration)        // it has waited and has got its slot
	Refused func(queue string, who Who, r Reason, d time.Duration) // it got none, after waiting for d
}
