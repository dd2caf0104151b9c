package toolqueue

import (
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// queue is one named queue, or the part of it for one key. Invariant: no call waits while a slot
// is free and the gate is open; the code that frees or adds a slot passes it to the first waiter.
type queue struct {
	name  string
	hooks *Hooks
	start time.Time // its clock is the monotonic time since

	lockReasons atomic.Uint32 // why the lock is needed, and hasRate
	spare       atomic.Int64  // tokens that may be taken without the lock
	fast        [fastSlots]slot
	shared      *shared // nil: a local queue
	keys        *keys   // nil: all calls share the limits
	parent      *keys   // of the queue of one key
	key         string  // that key

	mu         sync.Mutex
	config     Config
	extra      []*slot // beyond fast, allocated on demand
	slots      int     // not absent; more than the capacity while it drains
	freeList   *slot   // of extra
	waiters    waitList
	depth      int // waiting calls, for any slot or for that of their session
	sessions   map[string]*session
	waiterPool *waiter
	pooled     int

	bucket      bucket        // of config.Rate
	full        time.Duration // when the bucket is full
	lent        int64         // what spare was set to; 0: no token was lent
	closedUntil time.Duration // no call starts before that
	closedSince time.Duration
	closedWhy   string
	blocked     []*session  // sessions that have a slot and wait for the gate
	armed       bool        // gateTimer runs
	gateTimer   *time.Timer // runs gateOpens
}

func newQueue(name string, hooks *Hooks, start time.Time, c Config) *queue {
	q := new(queue)
	q.init(name, hooks, start, c)
	return q
}

func (q *queue) init(name string, hooks *Hooks, start time.Time, c Config) {
	q.name, q.hooks, q.start = name, hooks, start
	for i := range q.fast {
		s := &q.fast[i]
		s.queue, s.fast = q, true
		s.state.Store(absent)
	}
	q.config.PerKey = c.PerKey
	q.raise(c)
}

func (q *queue) now() time.Duration { return time.Since(q.start) }

func (q *queue) at(d time.Duration) time.Time { return q.start.Add(d) }

// setDepth sets the depth and calls the hook under the lock, in order.
func (q *queue) setDepth(depth int) {
	if q.parent != nil {
		q.parent.addDepth(depth - q.depth)
		q.depth = depth
		return
	}
	q.depth = depth
	if q.hooks.Depth != nil {
		q.hooks.Depth(q.name, depth)
	}
}

// enqueue adds a call to the waiters of its session's slot if the session holds one, else to
// those of the queue.
func (q *queue) enqueue(w *waiter) {
	w.waiting = true
	if s := w.session; s != nil {
		s.waiters.push(w)
	}
	if w.session == nil || w.session.slot == nil {
		q.pushWaiter(w)
	}
	q.setDepth(q.depth + 1)
}

func (q *queue) pushWaiter(w *waiter) {
	w.inQueue = true
	if q.waiters.first == nil {
		q.requireLock(lockWaiters)
	}
	q.waiters.push(w)
}

func (q *queue) removeWaiter(w *waiter) {
	w.inQueue = false
	q.waiters.remove(w)
	if q.waiters.first == nil {
		q.allowFast(lockWaiters)
	}
}

// dequeue removes a call from all lists.
func (q *queue) dequeue(w *waiter) {
	w.waiting = false
	if w.inQueue {
		q.removeWaiter(w)
	}
	if w.session != nil {
		w.session.waiters.remove(w)
	}
	q.setDepth(q.depth - 1)
}

// Permit is the right of one call to one slot. The zero Permit holds none.
type Permit struct {
	slot  *slot
	state uint64 // of the slot while the permit is valid
}

// Release returns the slot to the queue, or to the session's lease. Only the first call has an
// effect, even through copies.
func (p Permit) Release() {
	s := p.slot
	if s == nil {
		return
	}
	if s.fast && !s.queue.mustLock() {
		p.releaseFast()
	} else {
		p.release(false)
	}
}

// Lost is closed if the slot of a shared queue could not be renewed and may be given to another
// call. It is nil for local queues.
func (p Permit) Lost() <-chan struct{} {
	if p.slot == nil || p.slot.remote == nil {
		return nil
	}
	return p.slot.remote.lost
}

// releaseFast releases without the lock. A call may have been queued since lockReasons was
// read.
func (p Permit) releaseFast() {
	if p.slot.state.CompareAndSwap(p.state, p.state-held+nextUse) && p.slot.queue.mustLock() {
		p.slot.queue.sweep()
	}
}

// release releases under the lock. unused: the call never ran, so it starts no lease.
func (p Permit) release(unused bool) {
	s := p.slot
	if s.remote != nil {
		s.remote.giveBack(p, unused)
		return
	}
	q := s.queue
	now := q.now() // read before locking, to keep the lock short
	q.mu.Lock()
	var next *waiter
	if s.reuse(p) {
		q.recycle(s)
		if s.session != nil {
			next = q.callEnded(s.session, now, unused)
		} else {
			next = q.handOn(s, now)
		}
	}
	q.mu.Unlock()
	next.wake()
}

// handOn passes a slot to the first waiter, or frees it.
func (q *queue) handOn(s *slot, now time.Duration) *waiter {
	w := q.waiters.first
	if q.limited() {
		q.putFree(s)
		q.admit()
		return nil
	}
	if w == nil || q.slots > q.config.Concurrent {
		q.putFree(s)
		return nil
	}
	q.grant(w, s, now)
	return w
}

// grant gives a slot to the first waiter.
func (q *queue) grant(w *waiter, s *slot, now time.Duration) {
	q.dequeue(w)
	q.assign(w, s, now)
	if w.session != nil {
		q.startLease(w.session, s, now)
	}
}

// assign assigns a slot to a dequeued call.
func (q *queue) assign(w *waiter, s *slot, now time.Duration) {
	w.grantedAt = max(now, w.since)
	s.waiter = w // holds the caller, so that it need not be copied under the lock
	w.permit = Permit{s, s.state.Load()}
}

// wake signals a call that it has its slot. ready has room, so it does not block.
func (w *waiter) wake() {
	if w != nil {
		w.ready <- struct{}{}
	}
}

// Queues are the named queues of a process. Create them with New. All methods are safe for
// concurrent use.
type Queues struct {
	hooks  Hooks
	start  time.Time
	mu     sync.Mutex // serializes Configure
	queues atomic.Pointer[directory]

	sharing *Sharing // nil: no queue is shared
	process string   // random prefix of ticket IDs
}

// directory is an immutable snapshot of all queues.
type directory struct {
	small [maxSmall]named // if there are at most maxSmall
	index map[string]*queue
	list  []*queue // by name
}

type named struct {
	name  string
	queue *queue
}

// maxSmall is the number of queues up to which a linear search is faster than a map.
const maxSmall = 8

func newDirectory(queues map[string]*queue) *directory {
	d := &directory{index: queues}
	for i, name := range slices.Sorted(maps.Keys(queues)) {
		d.list = append(d.list, queues[name])
		if len(queues) <= maxSmall {
			d.small[i] = named{name, queues[name]}
		}
	}
	return d
}

func (d *directory) find(name string) *queue {
	for i := range d.small {
		if d.small[i].name == name {
			return d.small[i].queue
		}
		if d.small[i].queue == nil {
			break
		}
	}
	return d.index[name]
}

// New returns Queues without a queue.
func New(hooks Hooks) *Queues {
	q := &Queues{hooks: hooks, start: time.Now()}
	q.queues.Store(&directory{})
	return q
}

// EndSession ends all leases of a session and passes on their slots, those of shared queues
// soon after. A lease with a running call ends with the call.
func (q *Queues) EndSession(session string) {
	for _, in := range q.queues.Load().list {
		switch {
		case in.shared != nil:
			in.shared.endSession(session)
		case in.keys != nil:
			in.keys.each(func(of *queue) { of.endSession(session) })
		default:
			in.endSession(session)
		}
	}
}
