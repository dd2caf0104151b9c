package toolqueue

import (
	"runtime"
	"sync/atomic"
	"time"
)

// openSlots is how many slots of a queue can be taken and given back without
// its lock, while nobody waits. The others, of greater queues, are taken under
// the lock.
const openSlots = 8

// slot is one place in a queue.
//
// Its state is a number that only grows. The two lowest bits say what it is
// doing; the rest counts its uses, so that a permit, which names the state it
// was given for, can end its own use and no other.
//
//	free ─▶ entering ─▶ held ─▶ free
//
// Whoever makes it entering may write by, and nobody else looks there before
// it is held.
type slot struct {
	state   atomic.Uint64
	by      caller // unless the permit was handed to a waiter, who has it then
	queue   *queue
	session *session // whose lease it is; nil: held for one call
	waiter  *waiter  // who was handed it last, to be used again
	next    *slot    // in the queue's list of free slots
	open    bool     // one of the openSlots
	far     *farCall // whose slot in a shared queue it stands for
}

// caller is who has a slot. It is left there when the slot becomes free, so it
// has nothing that keeps much alive.
type caller struct {
	session, agent, tool, execution string
	since                           time.Time // when the slot was taken, if that is known
}

func (c *caller) set(who *Who) {
	c.session, c.agent, c.tool, c.execution, c.since = who.Session, who.Agent, who.Tool, who.Execution, who.Since
}

// holder is who has the slot.
func (s *slot) holder() caller {
	w := s.waiter
	if w == nil || w.permit != (Permit{s, s.state.Load()}) {
		return s.by
	}
	by := w.who
	by.since = s.queue.at(w.handed)
	return by
}

// What a slot is doing.
const (
	free     = 0
	entering = 1
	held     = 2
	absent   = 3 // the queue's capacity is smaller
	doing    = 3 // the bits
	oneUse   = 4
)

// take makes a free slot entering, if it is free.
func (s *slot) take() (state uint64, ok bool) {
	state = s.state.Load()
	return state + entering, state&doing == free && s.state.CompareAndSwap(state, state+entering)
}

// reuse ends the use of a permit and leaves the slot held, for whoever holds
// the queue's lock. It reports false if the use had ended before.
func (s *slot) reuse(p Permit) bool { return s.state.CompareAndSwap(p.state, p.state+oneUse) }

// occupy gives a call a slot that is held for it, with the queue locked.
func (s *slot) occupy(who *Who) Permit {
	s.by.set(who)
	return Permit{s, s.state.Load()}
}

// Why a queue is closed to those without its lock.
const (
	closedLine   = 1 << iota // calls wait: the slots are theirs
	closedLease              // sessions may hold slots
	closedLook               // someone reads who holds the slots
	closedShared             // the slots are kept elsewhere
)

// close has all who come from now on take the lock, and open ends that. Both
// need the lock. What those do who came before is settled by the order of two
// writes and two reads: they change the state of a slot and then look whether
// the queue is closed; here it is closed and then the states are looked at. So
// at least one sees the other.
func (q *queue) close(why uint32) { q.closed.Store(q.closed.Load() | why) }

func (q *queue) open(why uint32) { q.closed.Store(q.closed.Load() &^ why) }

// tryOpen takes a slot without the lock.
func (q *queue) tryOpen(who *Who) (Permit, bool) {
	for i := range q.first {
		s := &q.first[i]
		state, ok := s.take()
		if !ok {
			continue
		}
		if q.closed.Load() != 0 { // since we looked: it is not ours to write to
			s.state.Store(state - entering + oneUse)
			q.sweep()
			return Permit{}, false
		}
		s.by.set(who)
		s.state.Store(state + 1)
		return Permit{s, state + 1}, true
	}
	return Permit{}, false
}

// takeFree takes a slot that nobody holds, if there is one. It needs the lock.
func (q *queue) takeFree() *slot {
	for i := range q.first {
		if state, ok := q.first[i].take(); ok {
			q.first[i].state.Store(state + 1)
			return &q.first[i]
		}
	}
	s := q.free
	switch {
	case s != nil:
		q.free, s.next = s.next, nil
	case len(q.more) < q.config.Concurrent-openSlots:
		s = &slot{queue: q}
		q.more = append(q.more, s)
	default:
		return nil
	}
	s.state.Add(held)
	return s
}

// putFree gives back a slot that is held by whoever holds the lock.
func (q *queue) putFree(s *slot) {
	if !s.open {
		s.next, q.free = q.free, s
	}
	s.state.Add(oneUse - held)
}

// sweep gives free slots to those who wait. It is for who made a slot free
// without the lock and then saw that the queue is closed.
func (q *queue) sweep() {
	q.mu.Lock()
	q.letIn()
	q.mu.Unlock()
}

func (q *queue) letIn() {
	for q.line.first != nil {
		s := q.takeFree()
		if s == nil {
			return
		}
		q.keep(s)
		q.pass(s, q.now()).wake()
	}
}

// holders calls f with each slot that is held. The queue must be closed.
func (q *queue) holders(f func(*slot)) {
	for i := range q.first {
		s := &q.first[i]
		for s.state.Load()&doing == entering { // a few instructions from held
			runtime.Gosched()
		}
		if s.state.Load()&doing == held {
			f(s)
		}
	}
	for _, s := range q.more {
		if s.state.Load()&doing == held {
			f(s)
		}
	}
}
