package toolqueue

import (
	"context"
	"slices"
	"strings"
	"time"
)

// ensureRunning starts or wakes the goroutine. It needs the lock.
func (s *shared) ensureRunning() {
	if s.running {
		s.notify()
		return
	}
	s.running, s.stopped = true, make(chan struct{})
	go s.run()
}

func (s *shared) notify() {
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

// run executes steps until there is nothing to do or to renew.
func (s *shared) run() {
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	q := s.queue
	for {
		q.mu.Lock()
		at, any := s.due()
		if !any {
			s.running, s.signalled = false, false
			close(s.stopped)
			q.mu.Unlock()
			return
		}
		if wait := time.Until(at); wait > 0 {
			q.mu.Unlock()
			timer.Reset(wait)
			select {
			case <-timer.C:
			case <-s.wake:
			}
			continue
		}
		step := s.nextStep()
		q.mu.Unlock()
		s.execute(step)
	}
}

// due returns when the next step is due, if any.
func (s *shared) due() (at time.Time, any bool) {
	waits := false
	for _, c := range s.calls {
		waits = waits || c.state == remoteWaiting
		if keep := c.renewedAt.Add(s.lease / 3); !any || keep.Before(at) {
			at, any = keep, true
		}
	}
	soon := func(t time.Time) {
		if !any || t.Before(at) {
			at, any = t, true
		}
	}
	if waits {
		soon(s.steppedAt.Add(pollInterval))
		if s.signalled {
			soon(s.steppedAt.Add(s.pollDelay))
		}
		if at, any := s.gateDue(); any {
			soon(at)
		}
	}
	s.prune()
	if s.wantStatus || len(s.entering)+len(s.leaving)+len(s.idling)+len(s.unused)+len(s.ends)+len(s.gates) > 0 {
		soon(time.Time{})
	}
	if any && at.Before(s.retryAt) {
		at = s.retryAt
	}
	return at, any
}

// prune deletes requests whose tickets have expired by now.
func (s *shared) prune() {
	now := time.Now()
	for _, list := range []*[]pendingOp{&s.leaving, &s.idling, &s.unused, &s.ends} {
		*list = slices.DeleteFunc(*list, func(f pendingOp) bool { return !now.Before(f.until) })
	}
}

// nextStep builds the next step. All tickets due soon are renewed together, so that there are
// few steps.
func (s *shared) nextStep() Step {
	c := s.queue.config
	step := Step{
		Queue: s.queue.name, Concurrent: c.Concurrent, MaxWaiters: c.MaxWaiters, Lease: c.Lease, Rate: c.Rate, Lasts: s.lease, Gates: s.stepGates(),
		Leave: ids(s.leaving), Idle: ids(s.idling), Unused: ids(s.unused), EndSessions: ids(s.ends),
	}
	now, keep := time.Now(), false
	for _, c := range s.calls {
		keep = keep || c.sent && now.Sub(c.renewedAt) >= s.lease/3
	}
	for _, c := range s.calls {
		// One whose entering step had no answer is renewed, in case it exists.
		c.renewing = c.state == remoteEntering
		if c.sent && (c.renewing || keep && now.Sub(c.renewedAt) >= s.lease/6) {
			step.Keep, c.renewing = append(step.Keep, c.id), true
		}
	}
	for _, c := range s.entering {
		step.Enter = append(step.Enter, c.ticket())
		c.sent = true
	}
	s.wantStatus, s.signalled = false, false
	return step
}

func ids(list []pendingOp) []string {
	var out []string
	for _, f := range list {
		out = append(out, f.id)
	}
	return out
}

// execute executes a step and applies the answer.
func (s *shared) execute(step Step) {
	ctx, cancel := context.WithTimeout(context.Background(), s.lease*2/3)
	defer cancel()
	sent := time.Now()
	got, err := s.backend.Step(ctx, step)

	s.queue.mu.Lock()
	defer s.queue.mu.Unlock()
	s.steppedAt, s.lastErr = time.Now(), err
	if err != nil {
		s.backoff = min(max(2*s.backoff, minBackoff), maxBackoff)
		s.retryAt = s.steppedAt.Add(s.backoff)
	} else {
		s.backoff, s.retryAt = 0, time.Time{}
		s.leaving, s.idling = s.leaving[len(step.Leave):], s.idling[len(step.Idle):]
		s.unused, s.ends = s.unused[len(step.Unused):], s.ends[len(step.EndSessions):]
		s.gates = s.gates[len(step.Gates):]
		s.adjustPollDelay(got.Tickets)
		s.tickets, s.limits, s.clock, s.seenAt = got.Tickets, got.Limits, got.Now, s.steppedAt
		s.applyTickets(sent)
	}
	close(s.answered)
	s.answered = make(chan struct{})
	s.armLossTimer()
}

// adjustPollDelay doubles the poll delay while nothing changes.
func (s *shared) adjustPollDelay(rows []Ticket) {
	same := slices.EqualFunc(s.tickets, rows, func(a, b Ticket) bool { return a.ID == b.ID && a.Holds == b.Holds })
	if s.pollDelay = min(2*s.pollDelay, maxPollDelay); !same || s.pollDelay == 0 {
		s.pollDelay = minPollDelay
	}
}

// applyTickets updates the calls of this process from their tickets.
func (s *shared) applyTickets(sent time.Time) {
	own := map[string]*Ticket{}
	for i := range s.tickets {
		if t := &s.tickets[i]; strings.HasPrefix(t.ID, s.ids) {
			own[t.ID] = t
		}
	}
	for _, c := range s.calls {
		t := own[c.id]
		switch {
		case !c.sent: // added since the step was sent
		case t == nil:
			s.ticketMissing(c)
		default:
			if c.renewing {
				c.renewedAt = sent
			}
			s.ticketPresent(c, t)
		}
	}
	s.entering = slices.DeleteFunc(s.entering, func(c *remoteCall) bool { return c.state != remoteEntering })
}

func (s *shared) ticketPresent(c *remoteCall, t *Ticket) {
	switch {
	case c.state != remoteEntering && c.state != remoteWaiting:
	case t.Holds:
		s.setState(c, remoteHolding)
	case c.state == remoteEntering:
		s.setState(c, remoteWaiting)
	}
}

// ticketMissing handles a call without a ticket.
func (s *shared) ticketMissing(c *remoteCall) {
	switch c.state {
	case remoteEntering: // refused: the queue is full
		c.reason, c.err = ReasonFull, ErrFull
		s.setState(c, remoteDone)
	case remoteWaiting: // expired while this process was paused
		s.setState(c, remoteEntering)
		s.entering = append(s.entering, c)
	case remoteHolding:
		s.markLost(c)
		delete(s.calls, c.id)
	case remoteIdle: // the lease ended, or another call of the session has the slot
		s.setState(c, remoteDone)
	}
}
