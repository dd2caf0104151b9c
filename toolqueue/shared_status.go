package toolqueue

import (
	"context"
	"errors"
	"time"
)

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
		select {
		case <-heard:
		case <-time.After(lookFor):
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

// acquire is Acquire in a queue that is shared.
func (s *shared) acquire(ctx context.Context, who Who, maxWait time.Duration) (Permit, error) {
	q := s.queue
	w := farWait{shared: s, who: who, since: q.now()}
	if ctx.Err() != nil {
		return Permit{}, w.refused(ReasonCancelled, cancelled(ctx))
	}
	q.mu.Lock()
	most := q.config.within(maxWait)
	if s.closed {
		q.mu.Unlock()
		return Permit{}, w.refused(ReasonAway, away(errClosed))
	}
	w.call = s.enter(who)
	q.mu.Unlock()

	returns := false
	defer func() {
		if !returns { // a hook panicked: nobody must keep its place
			w.leave()
		}
	}()
	p, err := w.run(ctx, most)
	returns = true
	return p, err
}

// farWait is one call's wait for a ticket that holds a slot.
type farWait struct {
	shared *shared
	call   *farCall
	who    Who
	since  time.Duration
}

func (w *farWait) run(ctx context.Context, most time.Duration) (Permit, error) {
	var timeout <-chan time.Time
	if most == notAtAll { // but for one answer about the slots
		timer := time.NewTimer(w.shared.lease * 2 / 3)
		defer timer.Stop()
		timeout = timer.C
	} else if most > 0 {
		timeout = time.After(most)
	}
	for {
		select {
		case <-w.call.news:
		case <-ctx.Done():
			w.leave()
			return Permit{}, w.refused(ReasonCancelled, cancelled(ctx))
		case <-timeout:
			if state, _ := w.state(); state == farEnters || state == farWaits {
				why, err := w.timedOut()
				w.leave()
				return Permit{}, w.refused(why, err)
			}
		}
		switch state, waited := w.state(); state {
		case farHolds:
			return w.got(ctx, waited)
		case farOut:
			return Permit{}, w.refused(w.reasonOf())
		case farWaits:
			if most == notAtAll {
				w.leave()
				return Permit{}, w.refused(ReasonTimeout, ErrTimeout)
			}
			if !waited {
				w.begin()
			}
		}
	}
}

func (w *farWait) state() (now farState, waited bool) {
	w.shared.queue.mu.Lock()
	defer w.shared.queue.mu.Unlock()
	return w.call.state, w.call.waited
}

func (w *farWait) reasonOf() (Reason, error) {
	w.shared.queue.mu.Lock()
	defer w.shared.queue.mu.Unlock()
	if w.call.reason == ReasonAway {
		return ReasonAway, away(w.call.err)
	}
	return w.call.reason, w.call.err
}

// timedOut is why a wait was too long: for those before it, or for what keeps
// the slots.
func (w *farWait) timedOut() (Reason, error) {
	w.shared.queue.mu.Lock()
	defer w.shared.queue.mu.Unlock()
	if w.shared.trouble != nil {
		return ReasonAway, away(w.shared.trouble)
	}
	return ReasonTimeout, ErrTimeout
}

func away(err error) error { return errors.Join(ErrAway, err) }

// begin tells that the call stands in line.
func (w *farWait) begin() {
	q := w.shared.queue
	q.mu.Lock()
	w.call.waited = true
	depth, concurrent := w.shared.depth(nil), q.config.Concurrent
	q.mu.Unlock()
	if q.hooks.Queued != nil {
		q.hooks.Queued(q.name, w.who, depth, concurrent)
	}
	if w.who.Waits != nil {
		w.who.Waits(Waiting{far: w.call})
	}
}

// got is the outcome of a call that has its slot. One that was cancelled at
// that moment hands it on.
func (w *farWait) got(ctx context.Context, waited bool) (Permit, error) {
	if ctx.Err() != nil {
		w.leave()
		return Permit{}, w.refused(ReasonCancelled, cancelled(ctx))
	}
	if q := w.shared.queue; waited && q.hooks.Waited != nil {
		q.hooks.Waited(q.name, w.who, q.now()-w.since)
	}
	return w.call.permit(), nil
}

// leave gives up the place in line, or the slot.
func (w *farWait) leave() {
	w.shared.queue.mu.Lock()
	defer w.shared.queue.mu.Unlock()
	if w.call.state != farOut {
		w.shared.forget(w.call)
	}
}

func (w *farWait) refused(why Reason, err error) error {
	q := w.shared.queue
	waited := q.now() - w.since
	q.hooks.refused(q.name, w.who, why, waited)
	q.mu.Lock()
	defer q.mu.Unlock()
	return &Error{Queue: q.name, Reason: why, Waited: waited, Depth: w.shared.depth(w.call), Concurrent: q.config.Concurrent, Err: err}
}
