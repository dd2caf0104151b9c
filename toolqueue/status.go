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
