package toolqueue

import "time"

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
