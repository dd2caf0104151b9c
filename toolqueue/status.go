package toolqueue

import "time"

// Status is a queue at one moment.
type Status struct {
	Name       string
	Concurrent int
	InUse      int // slots that are taken, by a call or by a lease
	Depth      int // calls that wait: those in line, and those behind their own session's slot
	MaxWait    time.Duration
	MaxWaiters int
	Lease      Lease
	Holders    []Holder // one for each slot in use
	Waiters    []Waiter // those in line, in order
	// Shared says that the queue is that of several processes, of all of which
	// this is; Heard is when it was like this, zero if that is not known yet.
	Shared bool
	Heard  time.Time
}

// Holder is who has a slot.
type Holder struct {
	Session, Agent, Tool, Execution string
	Since                           time.Time // when the slot was taken; zero if it was not noted
	Leased                          bool      // held by the session from call to call
	Idle                            bool      // a lease with no call under way
	Expires                         time.Time // of a lease: when it ends if nothing happens; zero: it does not
	Behind                          int       // calls of that session that wait for their own slot
	Owner                           string    // of a shared queue: whose call it is (Sharing.Owner)
}

// Waiter is who stands in line.
type Waiter struct {
	Session, Agent, Tool, Execution string
	Since                           time.Time
	Position                        int    // from 1
	Owner                           string // as Holder.Owner
}

// Status is a queue at this moment, with at most maxWaiters of its waiters.
func (q *Queues) Status(queue string, maxWaiters int) (Status, bool) {
	in := q.queues.Load().find(queue)
	if in == nil {
		return Status{}, false
	}
	return in.status(maxWaiters), true
}

// All is the Status of all queues, by name.
func (q *Queues) All(maxWaiters int) []Status {
	queues := q.queues.Load().list
	for _, in := range queues {
		if in.shared != nil {
			in.shared.refresh() // all of them at once
		}
	}
	all := make([]Status, 0, len(queues))
	for _, in := range queues {
		all = append(all, in.status(maxWaiters))
	}
	return all
}

func (q *queue) status(maxWaiters int) Status {
	if q.shared != nil {
		return q.shared.status(maxWaiters)
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	c := q.config
	s := Status{Name: q.name, Concurrent: c.Concurrent, Depth: q.depth, MaxWait: c.MaxWait, MaxWaiters: c.MaxWaiters, Lease: c.Lease}
	q.close(closedLook)
	q.holders(func(slot *slot) { s.Holders = append(s.Holders, q.holder(slot)) })
	q.open(closedLook)
	s.InUse = len(s.Holders)
	for w := q.line.first; w != nil && len(s.Waiters) < maxWaiters; w = w.links[byQueue].next {
		s.Waiters = append(s.Waiters, Waiter{w.who.session, w.who.agent, w.who.tool, w.who.execution, q.at(w.since), len(s.Waiters) + 1, ""})
	}
	return s
}

func (q *queue) holder(slot *slot) Holder {
	by := slot.holder()
	h := Holder{Session: by.session, Agent: by.agent, Tool: by.tool, Execution: by.execution, Since: by.since}
	s := slot.session
	if s == nil {
		return h
	}
	h.Session, h.Leased, h.Idle, h.Since = s.name, true, !s.busy, q.at(s.taken)
	for w := s.waits.first; w != nil; w = w.links[bySession].next {
		h.Behind++
	}
	ends := q.heldUntil(s)
	if h.Idle {
		ends = s.expires
	}
	if ends != always {
		h.Expires = q.at(ends)
	}
	return h
}

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
