package toolqueue

import "time"

// Status is a snapshot of a queue.
type Status struct {
	Name       string
	Concurrent int
	InUse      int // slots held by calls or leases
	Depth      int // waiting calls, for any slot or for that of their session
	MaxWait    time.Duration
	MaxWaiters int
	Lease      Lease
	Holders    []Holder // one for each slot in use
	Waiters    []Waiter // those waiting for any slot, in order
	// Shared: the queue is shared by several processes, and this is the status of all of them. Heard is
	// the time of the snapshot, zero if there is none yet.
	Shared bool
	Heard  time.Time
	Rate   Rate // Burst is set; zero: none
	// PerKey: each key has its own limits. InUse and Depth are totals over all keys.
	PerKey bool
	Keys   int // number of keys that are kept
	// Limits has an entry for each key, by name, at most maxWaiters. A queue without keys has one
	// if it has a rate or is closed. A shared queue with keys lists the keys with calls or with a
	// bucket that is not full.
	Limits []Limit
}

// Closed returns the closing in Limits that lasts longest, and the number of closed keys; 0:
// none.
func (s *Status) Closed() (longest Closing, keys int) {
	for _, l := range s.Limits {
		if l.Closed == (Closing{}) {
			continue
		}
		if keys++; l.Closed.Until.After(longest.Until) {
			longest = l.Closed
		}
	}
	return longest, keys
}

// Holder is a held slot.
type Holder struct {
	Session, Agent, Tool, Execution string
	Since                           time.Time // when the slot was taken; zero: unknown
	Leased                          bool      // held by the session between calls
	Idle                            bool      // a lease without a running call
	Expires                         time.Time // when the idle lease or its maximum hold ends; zero: never
	Behind                          int       // calls of the session that wait for this slot
	Owner                           string    // for a shared queue: the process (Sharing.Owner)
	Key                             string    // Who.Key, if each key has limits of its own
}

// Waiter is a waiting call.
type Waiter struct {
	Session, Agent, Tool, Execution string
	Since                           time.Time
	Position                        int    // from 1, among the calls of its key
	Owner                           string // as Holder.Owner
	Key                             string // as Holder.Key
	Held                            Held
}

// Status returns the status of a queue, with at most maxWaiters of its waiters.
func (q *Queues) Status(queue string, maxWaiters int) (Status, bool) {
	in := q.queues.Load().find(queue)
	if in == nil {
		return Status{}, false
	}
	return in.status(maxWaiters), true
}

// All returns the status of all queues, by name.
func (q *Queues) All(maxWaiters int) []Status {
	queues := q.queues.Load().list
	for _, in := range queues {
		if in.shared != nil {
			in.shared.refresh() // requests all of them in parallel
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
	if q.keys != nil {
		return q.keys.status(maxWaiters)
	}
	s := q.emptyStatus()
	q.mu.Lock()
	defer q.mu.Unlock()
	s.Depth = q.depth
	q.requireLock(lockStatus)
	q.eachHeld(func(slot *slot) { s.Holders = append(s.Holders, q.holder(slot)) })
	q.allowFast(lockStatus)
	s.InUse = len(s.Holders)
	for w := q.waiters.first; w != nil && len(s.Waiters) < maxWaiters; w = w.links[byQueue].next {
		s.Waiters = append(s.Waiters, Waiter{
			Session: w.who.session, Agent: w.who.agent, Tool: w.who.tool, Execution: w.who.execution, Since: q.at(w.since),
			Position: len(s.Waiters) + 1, Key: q.key, Held: q.held(len(s.Waiters)+1, false, q.now()),
		})
	}
	if q.limited() || q.parent != nil {
		l := q.limit()
		l.InUse = s.InUse
		s.Limits = []Limit{l}
	}
	return s
}

// emptyStatus returns a status that has only the configuration.
func (q *queue) emptyStatus() Status {
	q.mu.Lock()
	defer q.mu.Unlock()
	c := q.config
	s := Status{Name: q.name, Concurrent: c.Concurrent, MaxWait: c.MaxWait, MaxWaiters: c.MaxWaiters, Lease: c.Lease, Rate: c.Rate.shown(), PerKey: c.PerKey}
	return s
}

func (q *queue) holder(slot *slot) Holder {
	by := slot.holder()
	h := Holder{Session: by.session, Agent: by.agent, Tool: by.tool, Execution: by.execution, Since: by.since, Key: q.key}
	s := slot.session
	if s == nil {
		return h
	}
	h.Session, h.Leased, h.Idle, h.Since = s.name, true, !s.busy, q.at(s.takenAt)
	for w := s.waiters.first; w != nil; w = w.links[bySession].next {
		h.Behind++
	}
	ends := q.heldUntil(s)
	if h.Idle {
		ends = s.expires
	}
	if ends != forever {
		h.Expires = q.at(ends)
	}
	return h
}

// Default is the queue of tools that name none. DefaultConcurrent is its capacity in Signalbox
// if no queues are configured (seed tool-queue-manager). New does not add it: pass both to
// Configure.
const (
	Default           = "default"
	DefaultConcurrent = 64
)

// Config is the configuration of a queue.
type Config struct {
	Concurrent int           // concurrent calls, at least 1
	MaxWait    time.Duration // maximum wait of a call; 0: until its context ends
	MaxWaiters int           // maximum number of waiting calls; 0: no limit
	Lease      Lease         // zero: a slot is held for one call
	// Shared shares the queue with other processes (Queues.Share). It has no effect without
	// Share.
	Shared bool
	Rate   Rate // of starts; zero: no rate
	// PerKey: all these limits apply to each key of the calls (Who.Key) separately, and no call
	// waits for a call of another key. Calls without a key share one set of limits.
	PerKey bool
}

// Lease makes a session keep its slot between calls, until it has been idle for Idle, has held
// it for MaxHold or is ended. The calls of one session in one queue then run one after another.
// A running call is never interrupted: an expired lease ends with it, and the session's calls
// that waited for it are queued again, at the back.
//
// The queue's bounds also apply to calls that wait behind another of their own session, and the
// depth counts them.
//
// Capacity 1 alone does not prevent two sessions from alternating in one browser tab; a lease
// does.
type Lease struct {
	Idle    time.Duration // time without a call; 0: no lease
	MaxHold time.Duration // since the slot was taken; 0: no bound
}

// Who is the caller, shown in the status. Session is also the key of a lease: calls without one
// never hold a lease.
type Who struct {
	Session string
	Agent   string
	Tool    string
	// Execution identifies the execution that the call is a part of.
	Execution string
	// Key selects the limits of a queue with PerKey; otherwise it has no effect. It is shown in
	// the status and stored for a shared queue.
	Key string
	// Since is the start of the call, if known: reading a clock costs more than taking a free
	// slot. Holder shows it for a call that did not wait; for one that did, the queue has read
	// its own clock.
	Since time.Time
	// Waits is called once if the call has to wait, in the goroutine of Acquire and before the
	// wait. It must return soon.
	Waits func(Waiting)
}

// Hooks are called on events. Each may be nil. Depth is called in the order of the changes,
// under the queue's lock: it must be quick and must not use the queue. The others are called
// without a lock. For a shared queue they report the calls of this process; the depth given to
// Queued is that of all processes.
type Hooks struct {
	Depth   func(queue string, depth int)                          // number of waiting calls, after each change
	Queued  func(queue string, who Who, depth, concurrent int)     // a call begins to wait; depth counts it
	Waited  func(queue string, who Who, wait time.Duration)        // a call has waited and got its slot
	Refused func(queue string, who Who, r Reason, d time.Duration) // a call got no slot, after waiting for d
}
