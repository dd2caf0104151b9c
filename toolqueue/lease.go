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

// A waiter can stand in two lines at once: in that of the queue and in that of
// its session.
const (
	byQueue = iota
	bySession
)

type links struct{ prev, next *waiter }

// line is a list of waiters that runs through the waiters themselves, so that
// one can leave from anywhere in one step and nothing is allocated.
type line struct {
	first, last *waiter
	by          int // which of the waiter's links it uses
}

func (l *line) push(w *waiter) {
	w.links[l.by] = links{prev: l.last}
	if l.last == nil {
		l.first = w
	} else {
		l.last.links[l.by].next = w
	}
	l.last = w
}

func (l *line) remove(w *waiter) {
	at := w.links[l.by]
	if at.prev == nil {
		l.first = at.next
	} else {
		at.prev.links[l.by].next = at.next
	}
	if at.next == nil {
		l.last = at.prev
	} else {
		at.next.links[l.by].prev = at.prev
	}
	w.links[l.by] = links{}
}

// position is a waiter's place, from 1.
func (l *line) position(w *waiter) (n int) {
	for ; w != nil; w = w.links[l.by].prev {
		n++
	}
	return n
}

// waiter is a call that waits. Its fields are guarded by the queue's lock.
type waiter struct {
	links   [2]links
	queue   *queue
	who     caller
	since   time.Duration // on the queue's clock
	handed  time.Duration // when it got its slot
	session *session      // nil: a call for itself
	// inLine says that it waits for any slot, else for the one that its
	// session holds. waits says that it waits at all.
	inLine, waits bool
	permit        Permit // what it was handed
	// ready receives one token when the permit is there.
	ready chan struct{}
	// use counts the calls that this waiter was used for: a Waiting of an
	// earlier one knows by it that its call waits no more.
	use  uint64
	next *waiter // in the queue's list of waiters to use again
}

// spareWaiters is how many waiters a queue keeps to use again. A rush of more
// is left to the garbage collector.
const spareWaiters = 256

// newWaiter returns one that stands in no line yet.
func (q *queue) newWaiter(who *Who, s *session, now time.Duration) *waiter {
	w := q.spare
	if w == nil {
		w = &waiter{queue: q, ready: make(chan struct{}, 1)}
	} else {
		q.spare, w.next = w.next, nil
		q.spares--
	}
	w.who.set(who)
	w.session, w.since = s, now
	return w
}

// keep takes back the waiter that was last handed a slot, when the use of the
// slot is over: by then its call has long looked at it for the last time. One
// that gave up is left to the garbage collector.
func (q *queue) keep(s *slot) {
	w := s.waiter
	if w == nil {
		return
	}
	s.waiter = nil
	if s.session != nil && w.permit.state+oneUse == s.state.Load() {
		s.by = w.who // an idle lease shows whose call was the last
	}
	w.session, w.permit = nil, Permit{}
	w.use++
	if q.spares < spareWaiters {
		w.next, q.spare = q.spare, w
		q.spares++
	}
}

// Waiting is a call that stands in line.
type Waiting struct {
	w   *waiter
	use uint64
	far *farCall // of a shared queue
}

// Position is its place in line, from 1, or 0 once it no longer waits. A call
// that waits for the slot that its own session holds has its place among the
// calls of that session.
func (w Waiting) Position() int {
	switch {
	case w.far != nil:
		return w.far.position()
	case w.w == nil:
		return 0
	}
	q := w.w.queue
	q.mu.Lock()
	defer q.mu.Unlock()
	switch {
	case w.w.use != w.use || !w.w.waits:
		return 0
	case w.w.inLine:
		return q.line.position(w.w)
	}
	return w.w.session.waits.position(w.w)
}
