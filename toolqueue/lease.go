package toolqueue

import "time"

// session is what a queue knows of a session: which of its calls wait, and the
// slot that it leases, if it does.
//
// A session without a lease stands in line with each of its calls. When the
// first of them gets a slot, the others leave the line: from then on they wait
// for that slot, in the same order. When the lease ends before their turn,
// they queue anew, at the back.
type session struct {
	name    string
	waits   line
	slot    *slot // leased; nil: none
	busy    bool  // a call is under way in it
	over    bool  // the lease ends with that call
	used    bool  // a call has made use of it
	taken   time.Duration
	expires time.Duration // while idle
	timer   *time.Timer
}

// sessionOf returns the session of a call that may hold a lease, else nil.
func (q *queue) sessionOf(who *Who) *session {
	if q.config.Lease.Idle <= 0 || who.Session == "" {
		return nil
	}
	s := q.sessions[who.Session]
	if s == nil {
		s = &session{name: who.Session, waits: line{by: bySession}}
		if q.sessions == nil {
			q.sessions = map[string]*session{}
		}
		q.sessions[s.name] = s
	}
	return s
}

// forget drops a session that neither waits nor holds.
func (q *queue) forget(s *session) {
	if s != nil && s.slot == nil && s.waits.first == nil {
		delete(q.sessions, s.name)
	}
}

// grant begins a lease with a call.
func (q *queue) grant(s *session, slot *slot, now time.Duration) {
	s.slot, slot.session = slot, s
	s.busy, s.over, s.used = true, false, false
	s.taken = now
	for w := s.waits.first; w != nil; w = w.links[bySession].next {
		q.unstand(w)
	}
}

// resume begins a call in the lease of its session, if that is idle.
func (q *queue) resume(s *session, who *Who, now time.Duration) (Permit, *waiter) {
	if now >= s.expires { // its timer is late
		return Permit{}, q.end(s, now)
	}
	s.timer.Stop()
	s.busy = true
	who.Since = q.at(now)
	return s.slot.occupy(who), nil
}

// callEnded is told of the end of a call in a lease. It returns who is to be
// woken.
func (q *queue) callEnded(s *session, now time.Duration, unused bool) *waiter {
	s.busy = false
	s.used = s.used || !unused
	held := q.heldUntil(s)
	if w := s.waits.first; w != nil && !s.over && now < held {
		q.leave(w)
		q.hand(w, s.slot, now)
		s.busy = true
		return w
	}
	if s.over || !s.used || now >= held {
		return q.end(s, now)
	}
	s.expires = min(held, later(now, q.config.Lease.Idle))
	if s.timer == nil {
		s.timer = time.AfterFunc(s.expires-now, func() { q.expire(s) })
	} else {
		s.timer.Reset(s.expires - now)
	}
	return nil
}

const always = time.Duration(1<<63 - 1)

// later is d after now; what is too far off to say is always.
func later(now, d time.Duration) time.Duration {
	if now > always-d {
		return always
	}
	return now + d
}

// heldUntil is when the lease is over whatever its calls do.
func (q *queue) heldUntil(s *session) time.Duration {
	if hold := q.config.Lease.MaxHold; hold > 0 {
		return later(s.taken, hold)
	}
	return always
}

// end takes the slot from an idle lease and hands it on. The session's calls
// that wait for it queue anew.
func (q *queue) end(s *session, now time.Duration) *waiter {
	slot := s.slot
	s.slot, slot.session = nil, nil
	if s.timer != nil {
		s.timer.Stop()
	}
	for w := s.waits.first; w != nil; w = w.links[bySession].next {
		q.stand(w)
	}
	q.forget(s)
	return q.pass(slot, now)
}

// expire is what the timer of an idle lease does. A call may have come first,
// and the lease may have become idle again since.
func (q *queue) expire(s *session) {
	q.mu.Lock()
	var next *waiter
	if now := q.now(); s.slot != nil && !s.busy && now >= s.expires {
		next = q.end(s, now)
	}
	q.mu.Unlock()
	next.wake()
}

// endSession ends the lease of a session, at once or with the call under way.
func (q *queue) endSession(name string) {
	q.mu.Lock()
	var next *waiter
	if s := q.sessions[name]; s != nil && s.slot != nil {
		if s.over = s.busy; !s.over {
			next = q.end(s, q.now())
		}
	}
	q.mu.Unlock()
	next.wake()
}
