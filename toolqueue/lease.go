package toolqueue

import "time"

// session is the state of a session in a queue: its waiting calls, and its leased slot.
//
// Without a lease, each call waits for any slot. When the first gets one, the others wait for
// that slot, in the same order. When the lease ends before their turn, they are queued again,
// at the back.
type session struct {
	name    string
	waiters waitList
	slot    *slot // leased; nil: none
	busy    bool  // a call runs in it
	ending  bool  // the lease ends with that call
	blocked bool  // its next call waits for the gate; not busy
	used    bool  // a call has run in it
	takenAt time.Duration
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
		s = &session{name: who.Session, waiters: waitList{by: bySession}}
		if q.sessions == nil {
			q.sessions = map[string]*session{}
		}
		q.sessions[s.name] = s
	}
	return s
}

// forget deletes a session without waiters and lease. A lease whose calls no longer wait for
// the gate is idle.
func (q *queue) forget(s *session) {
	switch {
	case s == nil || s.waiters.first != nil:
	case s.slot == nil:
		delete(q.sessions, s.name)
	case s.blocked && !s.used:
		q.endLease(s, q.now()).wake()
	case s.blocked:
		q.unblock(s)
		q.setExpiry(s, min(q.heldUntil(s), addSaturated(q.now(), q.config.Lease.Idle)))
	}
}

func (q *queue) startLease(s *session, slot *slot, now time.Duration) {
	s.slot, slot.session = slot, s
	s.busy, s.ending, s.used = true, false, false
	s.takenAt = now
	for w := s.waiters.first; w != nil; w = w.links[bySession].next {
		q.removeWaiter(w)
	}
}

// resume starts a call in the idle lease of its session, or makes the lease wait for the gate.
func (q *queue) resume(s *session, who *Who, now time.Duration) (Permit, *waiter) {
	if now >= s.expires { // the timer is late
		return Permit{}, q.endLease(s, now)
	}
	if q.armed || !q.begin(now) {
		q.block(s)
		return Permit{}, nil
	}
	if s.timer != nil {
		s.timer.Stop()
	}
	s.busy = true
	who.Since = q.at(now)
	return s.slot.occupy(who), nil
}

// callEnded handles the end of a call in a lease. It returns the waiter to wake, if any.
func (q *queue) callEnded(s *session, now time.Duration, unused bool) *waiter {
	s.busy = false
	s.used = s.used || !unused
	held := q.heldUntil(s)
	if w := s.waiters.first; w != nil && !s.ending && now < held {
		if q.limited() {
			q.block(s)
			q.admit()
			return nil
		}
		q.dequeue(w)
		q.assign(w, s.slot, now)
		s.busy = true
		return w
	}
	if s.ending || !s.used || now >= held {
		return q.endLease(s, now)
	}
	q.setExpiry(s, min(held, addSaturated(now, q.config.Lease.Idle)))
	return nil
}

// setExpiry sets when a lease without a running call ends.
func (q *queue) setExpiry(s *session, at time.Duration) {
	s.expires = at
	switch {
	case at == forever && s.timer == nil:
	case at == forever:
		s.timer.Stop()
	case s.timer == nil:
		s.timer = time.AfterFunc(at-q.now(), func() { q.expire(s) })
	default:
		s.timer.Reset(at - q.now())
	}
}

const forever = time.Duration(1<<63 - 1)

// addSaturated returns now + d, or forever on overflow.
func addSaturated(now, d time.Duration) time.Duration {
	if now > forever-d {
		return forever
	}
	return now + d
}

// heldUntil returns when MaxHold ends the lease.
func (q *queue) heldUntil(s *session) time.Duration {
	if hold := q.config.Lease.MaxHold; hold > 0 {
		return addSaturated(s.takenAt, hold)
	}
	return forever
}

// endLease takes the slot from an idle lease and passes it on. The session's waiters are queued
// again.
func (q *queue) endLease(s *session, now time.Duration) *waiter {
	slot := s.slot
	s.slot, slot.session = nil, nil
	q.unblock(s)
	if s.timer != nil {
		s.timer.Stop()
	}
	for w := s.waiters.first; w != nil; w = w.links[bySession].next {
		q.pushWaiter(w)
	}
	q.forget(s)
	return q.handOn(slot, now)
}

// expire ends an idle lease, unless a call was faster or it became idle again.
func (q *queue) expire(s *session) {
	q.mu.Lock()
	var next *waiter
	if now := q.now(); s.slot != nil && !s.busy && now >= s.expires {
		next = q.endLease(s, now)
	}
	q.mu.Unlock()
	next.wake()
}

// endSession ends the lease of a session, at once or with the running call.
func (q *queue) endSession(name string) {
	q.mu.Lock()
	var next *waiter
	if s := q.sessions[name]; s != nil && s.slot != nil {
		if s.ending = s.busy; !s.ending {
			next = q.endLease(s, q.now())
		}
	}
	q.mu.Unlock()
	next.wake()
}

// A waiter can be in two lists: that of the queue and that of its session.
const (
	byQueue = iota
	bySession
)

type links struct{ prev, next *waiter }

// waitList is an intrusive list of waiters: removal is O(1) and nothing is allocated.
type waitList struct {
	first, last *waiter
	by          int // index of waiter.links
}

func (l *waitList) push(w *waiter) {
	w.links[l.by] = links{prev: l.last}
	if l.last == nil {
		l.first = w
	} else {
		l.last.links[l.by].next = w
	}
	l.last = w
}

func (l *waitList) remove(w *waiter) {
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

// position returns the position of a waiter, from 1.
func (l *waitList) position(w *waiter) (n int) {
	for ; w != nil; w = w.links[l.by].prev {
		n++
	}
	return n
}

// waiter is a call that waits. It is guarded by the queue's lock.
type waiter struct {
	links     [2]links
	queue     *queue
	who       caller
	since     time.Duration // on the queue's clock
	grantedAt time.Duration
	session   *session // nil: the call can have no lease
	// inQueue: it waits for any slot, else for that of its session. waiting: it is waiting.
	inQueue, waiting bool
	permit           Permit // as assigned
	// ready receives one token when the permit is assigned.
	ready chan struct{}
	// generation is incremented when the waiter is recycled, so that an old Waiting detects that
	// its call no longer waits.
	generation uint64
	next       *waiter // in waiterPool
}

// maxPooled is the maximum number of pooled waiters; more are left to the garbage collector.
const maxPooled = 256

// newWaiter returns a waiter that is in no list yet.
func (q *queue) newWaiter(who *Who, s *session, now time.Duration) *waiter {
	w := q.waiterPool
	if w == nil {
		w = &waiter{queue: q, ready: make(chan struct{}, 1)}
	} else {
		q.waiterPool, w.next = w.next, nil
		q.pooled--
	}
	w.who.set(who)
	w.session, w.since = s, now
	return w
}

// recycle pools the waiter of a slot when the use of the slot is over: its call no longer reads
// it. Waiters that gave up are left to the garbage collector.
func (q *queue) recycle(s *slot) {
	w := s.waiter
	if w == nil {
		return
	}
	s.waiter = nil
	if s.session != nil && w.permit.state+nextUse == s.state.Load() {
		s.caller = w.who // an idle lease shows its last caller
	}
	w.session, w.permit = nil, Permit{}
	w.generation++
	if q.pooled < maxPooled {
		w.next, q.waiterPool = q.waiterPool, w
		q.pooled++
	}
}

// Waiting is a call that waits.
type Waiting struct {
	w          *waiter
	generation uint64
	remote     *remoteCall // of a shared queue
}

// Position is the position in the queue, from 1, or 0 if the call no longer waits. A call that
// waits for the slot of its own session has its position among the calls of that session.
func (w Waiting) Position() int {
	switch {
	case w.remote != nil:
		return w.remote.position()
	case w.w == nil:
		return 0
	}
	q := w.w.queue
	q.mu.Lock()
	defer q.mu.Unlock()
	return w.position()
}

// position is Position of a local queue. It needs the lock.
func (w Waiting) position() int {
	switch q := w.w.queue; {
	case w.w.generation != w.generation || !w.w.waiting:
		return 0
	case w.w.inQueue:
		return q.waiters.position(w.w)
	}
	return w.w.session.waiters.position(w.w)
}

// Held says what blocks the call, other than the calls before it: a closed queue or its rate, and
// until when. Zero: it waits for a slot, or it no longer waits.
func (w Waiting) Held() Held {
	switch {
	case w.remote != nil:
		return w.remote.held()
	case w.w == nil:
		return Held{}
	}
	q := w.w.queue
	q.mu.Lock()
	defer q.mu.Unlock()
	s := w.w.session
	return q.held(w.position(), s != nil && s.blocked, q.now())
}
