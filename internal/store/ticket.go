package store

import (
	"time"
)

// Ticket is a call's place in a tool queue that several processes share: in
// line while Fence is 0, then the holder of one slot until it is given back or
// runs out. Slots are rows, never counters: what dies with its process is free
// at its Expires.
type Ticket struct {
	Queue string
	ID    string // unique in the store; who makes it chooses it
	// Owner is the process that keeps it alive: a director's ID.
	Owner                           string
	Session, Agent, Tool, Execution string
	Place                           int64     // in line; lower is earlier
	Fence                           int64     // of the slot, 0 while it waits; only grows
	Since                           time.Time // it lined up
	Granted                         time.Time // its slot was taken: of a lease, by its first call; zero while it waits
	Expires                         time.Time // unless it is kept
	// Leased says that its session keeps the slot from call to call: when the
	// call has ended the ticket stays and is idle, and the next call of the
	// session, in whatever process, takes the slot over with a ticket of its
	// own.
	Leased bool
	Idle   time.Time // since when no call is under way in it; zero while one is
	Ends   time.Time // when the lease ends though it is kept, unless a call is under way; zero: never
	Used   bool      // a call of the lease made use of its slot
	Over   bool      // the lease ends with the call under way
}

// TicketStep is one atomic step of a shared tool queue. What is done, in this
// order:
//
//   - tickets that ran out go (Over), and idle ones whose lease is over;
//   - those of Leave go, and the leases of the sessions of EndSessions end;
//   - those of Keep last until Expires; the calls of Idle and Unused end;
//   - slots are given to those in line, first come first served;
//   - Enter lines up, one after the other: who finds neither a slot nor a place
//     in line (MaxWaiters) is not among the tickets afterwards.
//
// What names a ticket that is not there, or is there already (Enter), does
// nothing: a step of which nobody knows whether it was taken is taken again.
type TicketStep struct {
	Queue      string
	Concurrent int // slots, as the asking process knows the queue
	MaxWaiters int // 0: any number
	// LeaseIdle and LeaseHold are the bounds of the queue's session leases
	// (toolqueue.Lease); 0: none.
	LeaseIdle, LeaseHold time.Duration
	Enter                []Ticket // Place, Fence, Granted, Since and Expires are set here
	Leave                []string
	EndSessions          []string
	Keep                 []string
	Idle                 []string // leased ones whose call ended
	Unused               []string // the same of calls that never began: they leave no lease behind where there was none
	// Over says of a ticket, as it is stored when the step is taken, whether it
	// ran out. It changes nothing, and may be asked more than once. nil: it did
	// when Now is not before its Expires, which is right where Now never jumps.
	Over    func(Ticket) bool
	Now     time.Time
	Expires time.Time // of those of Enter and Keep
}
