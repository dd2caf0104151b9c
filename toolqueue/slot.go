package toolqueue

import (
	"runtime"
	"sync/atomic"
	"time"
)

// fastSlots is how many slots of a queue can be taken and released without the lock while
// nobody waits. The others need the lock.
const fastSlots = 8

// slot is one unit of capacity of a queue.
//
// Its state only grows. The two lowest bits are the phase; the rest counts its uses, so that a
// permit, which has the state it was issued for, can end only its own use.
//
//	free ─▶ entering ─▶ held ─▶ free
//
// Only the caller that moved it to entering may write slot.caller, and nobody reads that before
// it is held.
type slot struct {
	state   atomic.Uint64
	caller  caller // unless the permit was assigned to a waiter, which has it then
	queue   *queue
	session *session    // whose lease it is; nil: held for one call
	waiter  *waiter     // the last one it was assigned to, to be recycled
	next    *slot       // in freeList
	fast    bool        // one of the fastSlots
	remote  *remoteCall // the call of a shared queue
}

// caller is the caller of a slot. It stays after the release, so it must not keep much alive.
type caller struct {
	session, agent, tool, execution string
	since                           time.Time // when the slot was taken, if known
}

func (c *caller) set(who *Who) {
	c.session, c.agent, c.tool, c.execution, c.since = who.Session, who.Agent, who.Tool, who.Execution, who.Since
}

// holder returns the caller that holds the slot.
func (s *slot) holder() caller {
	w := s.waiter
	if w == nil || w.permit != (Permit{s, s.state.Load()}) {
		return s.caller
	}
	by := w.who
	by.since = s.queue.at(w.grantedAt)
	return by
}

// Phases of a slot.
const (
	free      = 0
	entering  = 1
	held      = 2
	absent    = 3 // beyond the capacity
	stateMask = 3 // the bits
	nextUse   = 4
)

// take moves a free slot to entering.
func (s *slot) take() (state uint64, ok bool) {
	state = s.state.Load()
	return state + entering, state&stateMask == free && s.state.CompareAndSwap(state, state+entering)
}

// reuse ends the use of a permit and leaves the slot held, for the caller with the lock. It
// returns false if the use has already ended.
func (s *slot) reuse(p Permit) bool { return s.state.CompareAndSwap(p.state, p.state+nextUse) }

// occupy issues a permit for a slot held under the lock.
func (s *slot) occupy(who *Who) Permit {
	s.caller.set(who)
	return Permit{s, s.state.Load()}
}

// Reasons why the lock is needed.
const (
	lockWaiters = 1 << iota // calls wait
	lockLeases              // sessions may hold slots
	lockStatus              // holders are being read
	lockShared              // a shared queue
)

// requireLock makes callers take the lock from now on, and allowFast ends that; both need the
// lock. Concurrent fast callers are ordered by two writes and two reads: they change the state
// of a slot and then read lockReasons; here lockReasons is written and then the states are
// read. So at least one side sees the other.
func (q *queue) requireLock(why uint32) { q.lockReasons.Store(q.lockReasons.Load() | why) }

func (q *queue) allowFast(why uint32) { q.lockReasons.Store(q.lockReasons.Load() &^ why) }

// tryFast takes a slot without the lock.
func (q *queue) tryFast(who *Who) (Permit, bool) {
	for i := range q.fast {
		s := &q.fast[i]
		state, ok := s.take()
		if !ok {
			continue
		}
		if q.lockReasons.Load() != 0 { // changed meanwhile: undo
			s.state.Store(state - entering + nextUse)
			q.sweep()
			return Permit{}, false
		}
		s.caller.set(who)
		s.state.Store(state + 1)
		return Permit{s, state + 1}, true
	}
	return Permit{}, false
}

// takeFree takes a free slot, if any. It needs the lock.
func (q *queue) takeFree() *slot {
	for i := range q.fast {
		if state, ok := q.fast[i].take(); ok {
			q.fast[i].state.Store(state + 1)
			return &q.fast[i]
		}
	}
	s := q.freeList
	switch {
	case s != nil:
		q.freeList, s.next = s.next, nil
	case len(q.extra) < q.config.Concurrent-fastSlots:
		s = &slot{queue: q}
		q.extra = append(q.extra, s)
	default:
		return nil
	}
	s.state.Add(held)
	return s
}

// putFree frees a held slot. It needs the lock.
func (q *queue) putFree(s *slot) {
	if !s.fast {
		s.next, q.freeList = q.freeList, s
	}
	s.state.Add(nextUse - held)
}

// sweep assigns free slots to waiters after a slot was freed without the lock while the lock
// was required.
func (q *queue) sweep() {
	q.mu.Lock()
	q.admit()
	q.mu.Unlock()
}

func (q *queue) admit() {
	for q.waiters.first != nil {
		s := q.takeFree()
		if s == nil {
			return
		}
		q.recycle(s)
		q.handOn(s, q.now()).wake()
	}
}

// eachHeld calls f with each held slot. The lock must be required.
func (q *queue) eachHeld(f func(*slot)) {
	for i := range q.fast {
		s := &q.fast[i]
		for s.state.Load()&stateMask == entering { // a few instructions before held
			runtime.Gosched()
		}
		if s.state.Load()&stateMask == held {
			f(s)
		}
	}
	for _, s := range q.extra {
		if s.state.Load()&stateMask == held {
			f(s)
		}
	}
}
