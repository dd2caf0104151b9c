package toolqueue

import "time"

const (
	// freshFor is how old what is shown may be before it is asked for anew,
	// and staleAfter from when on who looks waits for that, for at most
	// lookFor.
	freshFor   = 500 * time.Millisecond
	staleAfter = 2 * time.Second
	lookFor    = 200 * time.Millisecond
)

// refresh asks for the queue as it is, where that was some time ago, and
// returns what to wait for where it was too long ago.
func (s *shared) refresh() (heard <-chan struct{}) {
	s.queue.mu.Lock()
	defer s.queue.mu.Unlock()
	age := time.Since(s.seen)
	if age < freshFor || s.closed {
		return nil
	}
	s.look = true
	s.drive()
	if age < staleAfter || s.trouble != nil {
		return nil
	}
	return s.heard
}

func (s *shared) status(maxWaiters int) Status {
	if heard := s.refresh(); heard != nil {
		timer := time.NewTimer(lookFor)
		defer timer.Stop()
		select {
		case <-heard:
		case <-timer.C:
		}
	}
	q := s.queue
	q.mu.Lock()
	defer q.mu.Unlock()
	c := q.config
	out := Status{
		Name: q.name, Concurrent: c.Concurrent, MaxWait: c.MaxWait, MaxWaiters: c.MaxWaiters, Lease: c.Lease,
		Shared: true, Heard: s.seen, Depth: s.depth(nil),
	}
	behind := s.leases()
	for i := range s.rows {
		t := &s.rows[i]
		if lease := behind[t.Session]; !t.Holds && t.Leased && lease != nil {
			lease.behind++
		}
	}
	for i := range s.rows {
		t := &s.rows[i]
		switch {
		case t.Holds:
			out.Holders = append(out.Holders, holderOf(t, behind))
		case t.Leased && behind[t.Session] != nil:
		case len(out.Waiters) < maxWaiters:
			out.Waiters = append(out.Waiters, Waiter{t.Session, t.Agent, t.Tool, t.Execution, t.Since, len(out.Waiters) + 1, t.Owner})
		}
	}
	out.InUse = len(out.Holders)
	return out
}

// farLease is a slot that a session keeps.
type farLease struct{ behind int }

// leases are those of the sessions that hold a slot.
func (s *shared) leases() map[string]*farLease {
	var out map[string]*farLease
	for i := range s.rows {
		if t := &s.rows[i]; t.Holds && t.Leased {
			if out == nil {
				out = map[string]*farLease{}
			}
			out[t.Session] = &farLease{}
		}
	}
	return out
}

func holderOf(t *Ticket, behind map[string]*farLease) Holder {
	h := Holder{Session: t.Session, Agent: t.Agent, Tool: t.Tool, Execution: t.Execution, Since: t.Granted, Owner: t.Owner}
	if t.Leased {
		h.Leased, h.Idle, h.Expires, h.Behind = true, t.Idle, t.Ends, behind[t.Session].behind
	}
	return h
}

// depth is how many calls of all processes wait, one of ours left out.
func (s *shared) depth(but *farCall) (n int) {
	for i := range s.rows {
		if t := &s.rows[i]; !t.Holds && (but == nil || t.ID != but.id) {
			n++
		}
	}
	return n
}

// position is the place of a call among those that wait for the same: for any
// slot, or for that of its session.
func (c *farCall) position() int {
	s := c.shared
	s.queue.mu.Lock()
	defer s.queue.mu.Unlock()
	switch {
	case c.state == farEnters && c.waited: // it lost its place, and gets the last
		return s.depth(c) + 1
	case c.state != farWaits:
		return 0
	}
	leases := s.leases()
	of := func(t *Ticket) string { // the session whose slot it waits for
		if t.Leased && leases[t.Session] != nil {
			return t.Session
		}
		return ""
	}
	places := map[string]int{}
	for i := range s.rows {
		if t := &s.rows[i]; !t.Holds {
			places[of(t)]++
			if t.ID == c.id {
				return places[of(t)]
			}
		}
	}
	return s.depth(c) + 1
}
