package toolqueue

import (
	"context"
	"slices"
	"strings"
	"time"
)

// drive sees to it that what is to be done is done. It needs the lock.
func (s *shared) drive() {
	if s.driving {
		s.nudge()
		return
	}
	s.driving, s.gone = true, make(chan struct{})
	go s.run()
}

func (s *shared) nudge() {
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

// run takes steps until there is nothing to do, and nothing to keep.
func (s *shared) run() {
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	q := s.queue
	for {
		q.mu.Lock()
		at, any := s.due()
		if !any {
			s.driving, s.stirred = false, false
			close(s.gone)
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
		step := s.gather()
		q.mu.Unlock()
		s.take(step)
	}
}

// due is when the next step is to be taken, if ever.
func (s *shared) due() (at time.Time, any bool) {
	waits := false
	for _, c := range s.calls {
		waits = waits || c.state == farWaits
		if keep := c.kept.Add(s.lease / 3); !any || keep.Before(at) {
			at, any = keep, true
		}
	}
	soon := func(t time.Time) {
		if !any || t.Before(at) {
			at, any = t, true
		}
	}
	if waits {
		soon(s.stepped.Add(pollEvery))
		if s.stirred {
			soon(s.stepped.Add(s.calm))
		}
	}
	s.prune()
	if s.look || len(s.enters)+len(s.leave)+len(s.idles)+len(s.unused)+len(s.ends) > 0 {
		soon(time.Time{})
	}
	if any && at.Before(s.retry) {
		at = s.retry
	}
	return at, any
}

// prune forgets what is of no use any more: by now the tickets have run out.
func (s *shared) prune() {
	now := time.Now()
	for _, list := range []*[]farewell{&s.leave, &s.idles, &s.unused, &s.ends} {
		*list = slices.DeleteFunc(*list, func(f farewell) bool { return !now.Before(f.until) })
	}
}

// gather puts together the next step. All that is kept soon is kept now, so
// that there are few steps for it.
func (s *shared) gather() Step {
	c := s.queue.config
	step := Step{
		Queue: s.queue.name, Concurrent: c.Concurrent, MaxWaiters: c.MaxWaiters, Lease: c.Lease, Lasts: s.lease,
		Leave: ids(s.leave), Idle: ids(s.idles), Unused: ids(s.unused), EndSessions: ids(s.ends),
	}
	now, keep := time.Now(), false
	for _, c := range s.calls {
		keep = keep || c.sent && now.Sub(c.kept) >= s.lease/3
	}
	for _, c := range s.calls {
		// One that entered with a step of which nobody knows is kept, should it
		// be there.
		c.keeps = c.state == farEnters
		if c.sent && (c.keeps || keep && now.Sub(c.kept) >= s.lease/6) {
			step.Keep, c.keeps = append(step.Keep, c.id), true
		}
	}
	for _, c := range s.enters {
		step.Enter = append(step.Enter, c.ticket())
		c.sent = true
	}
	s.look, s.stirred = false, false
	return step
}

func ids(list []farewell) []string {
	var out []string
	for _, f := range list {
		out = append(out, f.id)
	}
	return out
}

// take takes a step and deals with what it says.
func (s *shared) take(step Step) {
	ctx, cancel := context.WithTimeout(context.Background(), s.lease*2/3)
	defer cancel()
	sent := time.Now()
	rows, err := s.far.Step(ctx, step)

	s.queue.mu.Lock()
	defer s.queue.mu.Unlock()
	s.stepped, s.trouble = time.Now(), err
	if err != nil {
		s.pause = min(max(2*s.pause, retryFirst), retryMost)
		s.retry = s.stepped.Add(s.pause)
	} else {
		s.pause, s.retry = 0, time.Time{}
		s.leave, s.idles = s.leave[len(step.Leave):], s.idles[len(step.Idle):]
		s.unused, s.ends = s.unused[len(step.Unused):], s.ends[len(step.EndSessions):]
		s.calmer(rows)
		s.rows, s.seen = rows, s.stepped
		s.learn(sent)
	}
	close(s.heard)
	s.heard = make(chan struct{})
	s.watch()
}

// calmer has signs looked at the less often, the less they mean.
func (s *shared) calmer(rows []Ticket) {
	same := slices.EqualFunc(s.rows, rows, func(a, b Ticket) bool { return a.ID == b.ID && a.Holds == b.Holds })
	if s.calm = min(2*s.calm, stirMost); !same || s.calm == 0 {
		s.calm = stirFirst
	}
}

// learn has the calls of this process be what their tickets say.
func (s *shared) learn(sent time.Time) {
	own := map[string]*Ticket{}
	for i := range s.rows {
		if t := &s.rows[i]; strings.HasPrefix(t.ID, s.ids) {
			own[t.ID] = t
		}
	}
	for _, c := range s.calls {
		t := own[c.id]
		switch {
		case !c.sent: // it came since the step was sent
		case t == nil:
			s.missing(c)
		default:
			if c.keeps {
				c.kept = sent
			}
			s.present(c, t)
		}
	}
	s.enters = slices.DeleteFunc(s.enters, func(c *farCall) bool { return c.state != farEnters })
}

func (s *shared) present(c *farCall, t *Ticket) {
	switch {
	case c.state != farEnters && c.state != farWaits:
	case t.Holds:
		s.turn(c, farHolds)
	case c.state == farEnters:
		s.turn(c, farWaits)
	}
}

// missing deals with a call that has no ticket.
func (s *shared) missing(c *farCall) {
	switch c.state {
	case farEnters: // neither a slot nor a place in line
		c.reason, c.err = ReasonFull, ErrFull
		s.turn(c, farOut)
	case farWaits: // its place was lost while this process stood still
		s.turn(c, farEnters)
		s.enters = append(s.enters, c)
	case farHolds:
		s.lose(c)
		delete(s.calls, c.id)
	case farIdles: // its lease is over, or another call of the session has the slot
		s.turn(c, farOut)
	}
}
