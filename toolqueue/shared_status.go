package toolqueue

import (
	"context"
	"errors"
	"time"
)

const (
	// A status older than refreshAfter is refreshed; a reader of one older than staleAfter
	// waits for that, at most refreshTimeout.
	refreshAfter   = 500 * time.Millisecond
	staleAfter     = 2 * time.Second
	refreshTimeout = 200 * time.Millisecond
)

// refresh requests a step if the status is old, and returns a channel to wait for if it is
// stale.
func (s *shared) refresh() (heard <-chan struct{}) {
	s.queue.mu.Lock()
	defer s.queue.mu.Unlock()
	age := time.Since(s.seenAt)
	if age < refreshAfter || s.closed {
		return nil
	}
	s.wantStatus = true
	s.ensureRunning()
	if age < staleAfter || s.lastErr != nil {
		return nil
	}
	return s.answered
}

func (s *shared) status(maxWaiters int) Status {
	if heard := s.refresh(); heard != nil {
		select {
		case <-heard:
		case <-time.After(refreshTimeout):
		}
	}
	q := s.queue
	q.mu.Lock()
	defer q.mu.Unlock()
	c := q.config
	out := Status{
		Name: q.name, Concurrent: c.Concurrent, MaxWait: c.MaxWait, MaxWaiters: c.MaxWaiters, Lease: c.Lease,
		Shared: true, Heard: s.seenAt, Depth: s.depth(nil), Rate: c.Rate.shown(), PerKey: c.PerKey,
	}
	out.Limits, out.Keys = s.statusLimits(maxWaiters)
	if !c.PerKey {
		out.Keys = 0
	}
	now, places := s.sharedNow(), map[string]int{}
	behind := s.leases()
	for i := range s.tickets {
		t := &s.tickets[i]
		if lease := behind[t.line()]; !t.Holds && t.Leased && lease != nil {
			lease.behind++
		}
	}
	for i := range s.tickets {
		t := &s.tickets[i]
		switch {
		case t.Holds:
			out.Holders = append(out.Holders, holderOf(t, behind))
		case t.Leased && behind[t.line()] != nil:
		case len(out.Waiters) < maxWaiters:
			places[t.Key]++
			out.Waiters = append(out.Waiters, Waiter{
				Session: t.Session, Agent: t.Agent, Tool: t.Tool, Execution: t.Execution, Since: t.Since,
				Position: places[t.Key], Owner: t.Owner, Key: t.Key, Held: s.held(t.Key, places[t.Key], now),
			})
		}
	}
	out.InUse = len(out.Holders)
	return out
}

// sharedLease is a slot leased by a session.
type sharedLease struct{ behind int }

// line is what calls wait for: any slot of a key, or that of a session.
type line struct{ key, session string }

func (t *Ticket) line() line { return line{t.Key, t.Session} }

// leases returns the sessions that hold a slot.
func (s *shared) leases() map[line]*sharedLease {
	var out map[line]*sharedLease
	for i := range s.tickets {
		if t := &s.tickets[i]; t.Holds && t.Leased {
			if out == nil {
				out = map[line]*sharedLease{}
			}
			out[t.line()] = &sharedLease{}
		}
	}
	return out
}

func holderOf(t *Ticket, behind map[line]*sharedLease) Holder {
	h := Holder{Session: t.Session, Agent: t.Agent, Tool: t.Tool, Execution: t.Execution, Since: t.Granted, Owner: t.Owner, Key: t.Key}
	if t.Leased {
		h.Leased, h.Idle, h.Expires, h.Behind = true, t.Idle, t.Ends, behind[t.line()].behind
	}
	return h
}

// depth counts the waiting calls of all processes, except one.
func (s *shared) depth(but *remoteCall) (n int) {
	for i := range s.tickets {
		if t := &s.tickets[i]; !t.Holds && (but == nil || t.ID != but.id) {
			n++
		}
	}
	return n
}

// position returns the position among calls of its key that wait for the same: any slot, or that
// of the session.
func (c *remoteCall) position() int {
	s := c.shared
	s.queue.mu.Lock()
	defer s.queue.mu.Unlock()
	switch {
	case c.state == remoteEntering && c.waited: // its ticket was lost: it is queued again, last
		return s.depth(c) + 1
	case c.state != remoteWaiting:
		return 0
	}
	leases := s.leases()
	of := func(t *Ticket) line { // the key, and the session whose slot it waits for
		if t.Leased && leases[t.line()] != nil {
			return t.line()
		}
		return line{t.Key, ""}
	}
	places := map[line]int{}
	for i := range s.tickets {
		if t := &s.tickets[i]; !t.Holds {
			places[of(t)]++
			if t.ID == c.id {
				return places[of(t)]
			}
		}
	}
	return s.depth(c) + 1
}

// acquire acquires in a shared queue.
func (s *shared) acquire(ctx context.Context, who Who, maxWait time.Duration) (Permit, error) {
	q := s.queue
	w := remoteWait{shared: s, who: who, since: q.now()}
	if ctx.Err() != nil {
		return Permit{}, w.refused(ReasonCancelled, cancelled(ctx))
	}
	q.mu.Lock()
	most := q.config.boundWait(maxWait)
	if s.closed {
		q.mu.Unlock()
		return Permit{}, w.refused(ReasonUnavailable, away(errClosed))
	}
	w.call = s.enter(who)
	q.mu.Unlock()

	returns := false
	defer func() {
		if !returns { // a hook panicked
			w.leave()
		}
	}()
	p, err := w.run(ctx, most)
	returns = true
	return p, err
}

// remoteWait is the wait of one call in a shared queue.
type remoteWait struct {
	shared *shared
	call   *remoteCall
	who    Who
	since  time.Duration
}

func (w *remoteWait) run(ctx context.Context, most time.Duration) (Permit, error) {
	var timeout <-chan time.Time
	if most == noWait { // bounds the one step needed
		timer := time.NewTimer(w.shared.lease * 2 / 3)
		defer timer.Stop()
		timeout = timer.C
	} else if most > 0 {
		timeout = time.After(most)
	}
	for {
		select {
		case <-w.call.changed:
		case <-ctx.Done():
			w.leave()
			return Permit{}, w.refused(ReasonCancelled, cancelled(ctx))
		case <-timeout:
			if state, _ := w.state(); state == remoteEntering || state == remoteWaiting {
				why, err := w.timedOut()
				held := w.call.held()
				w.leave()
				return Permit{}, w.refusedHeld(why, err, held)
			}
		}
		switch state, waited := w.state(); state {
		case remoteHolding:
			return w.granted(ctx, waited)
		case remoteDone:
			return Permit{}, w.refused(w.reasonOf())
		case remoteWaiting:
			if most == noWait {
				held := w.call.held()
				w.leave()
				return Permit{}, w.refusedHeld(ReasonTimeout, ErrTimeout, held)
			}
			if !waited {
				w.reportWaiting()
			}
		}
	}
}

func (w *remoteWait) state() (now remoteState, waited bool) {
	w.shared.queue.mu.Lock()
	defer w.shared.queue.mu.Unlock()
	return w.call.state, w.call.waited
}

func (w *remoteWait) reasonOf() (Reason, error) {
	w.shared.queue.mu.Lock()
	defer w.shared.queue.mu.Unlock()
	if w.call.reason == ReasonUnavailable {
		return ReasonUnavailable, away(w.call.err)
	}
	return w.call.reason, w.call.err
}

// timedOut returns the reason of a timeout: other calls, or a failing backend.
func (w *remoteWait) timedOut() (Reason, error) {
	w.shared.queue.mu.Lock()
	defer w.shared.queue.mu.Unlock()
	if w.shared.lastErr != nil {
		return ReasonUnavailable, away(w.shared.lastErr)
	}
	return ReasonTimeout, ErrTimeout
}

func away(err error) error { return errors.Join(ErrUnavailable, err) }

// reportWaiting calls the hooks.
func (w *remoteWait) reportWaiting() {
	q := w.shared.queue
	q.mu.Lock()
	w.call.waited = true
	depth, concurrent := w.shared.depth(nil), q.config.Concurrent
	q.mu.Unlock()
	if q.hooks.Queued != nil {
		q.hooks.Queued(q.name, w.who, depth, concurrent)
	}
	if w.who.Waits != nil {
		w.who.Waits(Waiting{remote: w.call})
	}
}

// granted returns the outcome of a call with a slot. A cancelled one releases it.
func (w *remoteWait) granted(ctx context.Context, waited bool) (Permit, error) {
	if ctx.Err() != nil {
		w.leave()
		return Permit{}, w.refused(ReasonCancelled, cancelled(ctx))
	}
	if q := w.shared.queue; waited && q.hooks.Waited != nil {
		q.hooks.Waited(q.name, w.who, q.now()-w.since)
	}
	return w.call.permit(), nil
}

// leave drops the ticket.
func (w *remoteWait) leave() {
	w.shared.queue.mu.Lock()
	defer w.shared.queue.mu.Unlock()
	if w.call.state != remoteDone {
		w.shared.drop(w.call)
	}
}

func (w *remoteWait) refused(why Reason, err error) error { return w.refusedHeld(why, err, Held{}) }

func (w *remoteWait) refusedHeld(why Reason, err error, held Held) error {
	q := w.shared.queue
	waited := q.now() - w.since
	q.hooks.refused(q.name, w.who, why, waited)
	q.mu.Lock()
	defer q.mu.Unlock()
	return &Error{Queue: q.name, Reason: why, Waited: waited, Depth: w.shared.depth(w.call), Concurrent: q.config.Concurrent, Held: held, Err: err}
}
