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
// Only the caller that moved it to entering may write slot.caller, which is not read before the
// slot is held.
type slot struct {
	state   atomic.Uint64
	caller  caller // unless the permit was assigned to a waiter, which has it then
	queue   *queue
	session *session    // whose lease it is; nil: held for one call
	waiter  *waiter     // the last one it was assigned to, to be recycled
	next    *slot       // in freeList
	fast    bool        // one of the fastSlots
	index   int         // of an extra one: its place there
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
	absent    = 3 // beyond the capacity: held + 1
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
	lockDrains              // more slots than the capacity, which has shrunk
	lockClosed              // no call starts
	lockKeyed               // each key has limits of its own
	hasRate                 // not a reason: a start takes a token, without the lock from spare
)

// requireLock makes callers take the lock from now on, and allowFast ends that; both need the
// lock. Concurrent fast callers are ordered by two writes and two reads: they change the state
// of a slot and then read lockReasons; here lockReasons is written and then the states are
// read. So at least one side sees the other.
func (q *queue) requireLock(why uint32) { q.lockReasons.Store(q.lockReasons.Load() | why) }

func (q *queue) allowFast(why uint32) { q.lockReasons.Store(q.lockReasons.Load() &^ why) }

func (q *queue) mustLock() bool { return q.lockReasons.Load()&^hasRate != 0 }

// tryFast takes a slot without the lock.
func (q *queue) tryFast(who *Who) (Permit, bool) {
	for i := range q.fast {
		s := &q.fast[i]
		state, ok := s.take()
		if !ok {
			continue
		}
		if why := q.lockReasons.Load(); why != 0 && (why != hasRate || !q.takeSpare() && !q.takeToken()) { // changed meanwhile, or no token: undo
			s.state.Store(state - entering + nextUse)
			if q.mustLock() {
				q.sweep()
			}
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
	if q.slots > q.config.Concurrent {
		if q.fit(); q.slots > q.config.Concurrent {
			return nil
		}
	}
	return q.freeSlot()
}

// hasFree reports whether takeFree would take a slot. It needs the lock.
func (q *queue) hasFree() bool {
	if q.slots > q.config.Concurrent {
		q.fit()
	}
	free := q.slots < q.config.Concurrent || q.slots == q.config.Concurrent && q.freeList != nil
	for i := range q.fast {
		free = free || q.slots <= q.config.Concurrent && q.fast[i].state.Load()&stateMask == 0
	}
	return free
}

// freeSlot takes a free slot within the capacity or beyond it. It needs the lock.
func (q *queue) freeSlot() *slot {
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
	case q.slots < q.config.Concurrent:
		s = &slot{queue: q, index: len(q.extra)}
		q.extra = append(q.extra, s)
		q.slots++
	default:
		return nil
	}
	s.state.Add(held)
	return s
}

// fit adds the missing fast slots of the capacity, or removes free slots beyond it. Held slots
// beyond the capacity are removed when they become free. It needs the lock.
func (q *queue) fit() {
	for i := range q.fast {
		if s := &q.fast[i]; q.slots < q.config.Concurrent && s.state.Load()&stateMask == absent {
			s.state.Add(nextUse - absent)
			q.slots++
		}
	}
	if q.slots <= q.config.Concurrent {
		q.allowFast(lockDrains)
		return
	}
	q.requireLock(lockDrains) // later releases take the lock, or sweep
	for q.slots > q.config.Concurrent {
		s := q.freeSlot()
		if s == nil {
			return
		}
		q.recycle(s)
		q.retire(s)
	}
}

// retire removes a held slot. It needs the lock.
func (q *queue) retire(s *slot) {
	s.state.Add(absent - held)
	if !s.fast {
		last := q.extra[len(q.extra)-1]
		q.extra[s.index], last.index = last, s.index
		q.extra[len(q.extra)-1] = nil
		q.extra = q.extra[:len(q.extra)-1]
	}
	if q.slots--; q.slots <= q.config.Concurrent {
		q.allowFast(lockDrains)
	}
}

// putFree frees a held slot, or removes it if it is beyond the capacity. It needs the lock.
func (q *queue) putFree(s *slot) {
	if q.slots > q.config.Concurrent {
		q.retire(s)
		return
	}
	if len(q.extra) > max(0, q.config.Concurrent-fastSlots) && !s.fast { // a capacity that has shrunk: a fast one takes its place
		q.retire(s)
		q.fit()
		return
	}
	if !s.fast {
		s.next, q.freeList = q.freeList, s
	}
	s.state.Add(nextUse - held)
}

// sweep assigns free slots to waiters after a slot was freed without the lock while the lock
// was required.
func (q *queue) sweep() {
	q.mu.Lock()
	q.fit()
	q.admit()
	q.mu.Unlock()
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
