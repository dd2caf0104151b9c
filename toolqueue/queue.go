package toolqueue

import (
	"sync"
	"time"
)

// queue is one named queue. Nobody stands in its line beside a free slot: who
// gives up a slot, or makes one, gives it to the first in line in the same
// step.
type queue struct {
	name  string
	hooks *Hooks
	start time.Time // its clock is the time since then, which no one can set back

	mu       sync.Mutex
	config   Config
	inUse    int
	slots    []*slot // made when first needed, at most config.Concurrent
	free     *slot
	line     line
	depth    int // calls that wait, in line or for their own session's slot
	sessions map[string]*session
	spare    *waiter
	spares   int
}

// slot is one place in a queue.
type slot struct {
	queue *queue
	// use counts the permits given for it: one of an earlier use is over.
	use     uint64
	held    bool
	who     Who
	since   time.Time
	session *session // whose lease it is; nil: held for one call
	next    *slot    // in the queue's list of free slots
}

func (q *queue) now() time.Duration { return time.Since(q.start) }

func (q *queue) at(d time.Duration) time.Time { return q.start.Add(d) }

// takeFree takes a slot that nobody holds, if there is one.
func (q *queue) takeFree() *slot {
	if q.inUse >= q.config.Concurrent {
		return nil
	}
	s := q.free
	if s == nil {
		s = &slot{queue: q}
		q.slots = append(q.slots, s)
	} else {
		q.free, s.next = s.next, nil
	}
	s.held = true
	q.inUse++
	return s
}

// occupy gives a call a slot that is held for it already.
func (s *slot) occupy(who Who, since time.Time) Permit {
	s.use++
	s.who, s.since = who, since
	return Permit{s, s.use}
}

// setDepth keeps the depth and those who look at it the same at every moment.
func (q *queue) setDepth(depth int) {
	q.depth = depth
	if q.hooks.Depth != nil {
		q.hooks.Depth(q.name, depth)
	}
}

// enqueue puts a call at the end: behind its session's slot where the session
// holds one, else in line.
func (q *queue) enqueue(w *waiter) {
	w.waits = true
	if s := w.session; s != nil {
		s.waits.push(w)
	}
	if w.session == nil || w.session.slot == nil {
		q.stand(w)
	}
	q.setDepth(q.depth + 1)
}

func (q *queue) stand(w *waiter) {
	w.inLine = true
	q.line.push(w)
}

// leave takes a call out of all lines.
func (q *queue) leave(w *waiter) {
	w.waits = false
	if w.inLine {
		w.inLine = false
		q.line.remove(w)
	}
	if w.session != nil {
		w.session.waits.remove(w)
	}
	q.setDepth(q.depth - 1)
}

// Permit is the right to one slot, for one call. The zero Permit holds none.
type Permit struct {
	slot *slot
	use  uint64
}

// Release gives the slot back, or to the session's lease. It may be called
// more than once, also of a copy: only the first counts.
func (p Permit) Release() {
	if p.slot != nil {
		p.giveBack(false)
	}
}

// giveBack ends a permit. A call that never made use of it leaves no lease.
func (p Permit) giveBack(unused bool) {
	s := p.slot
	q := s.queue
	q.mu.Lock()
	var next *waiter
	if s.use == p.use {
		s.use++
		if s.session != nil {
			next = q.callEnded(s.session, unused)
		} else {
			next = q.pass(s)
		}
	}
	q.mu.Unlock()
	next.wake()
}

// pass hands a slot to the first in line, or to nobody.
func (q *queue) pass(s *slot) *waiter {
	w := q.line.first
	if w == nil {
		s.held, s.who = false, Who{}
		s.next, q.free = q.free, s
		q.inUse--
		return nil
	}
	q.leave(w)
	q.hand(w, s)
	if w.session != nil {
		q.grant(w.session, s)
	}
	return w
}

// hand gives a call that has left the line its slot.
func (q *queue) hand(w *waiter, s *slot) { w.permit = s.occupy(w.who, q.at(q.now())) }

// wake tells a call that it has its slot. Nobody waits for room in ready.
func (w *waiter) wake() {
	if w != nil {
		w.ready <- struct{}{}
	}
}
