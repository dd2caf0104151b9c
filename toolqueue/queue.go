package toolqueue

import (
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// queue is one named queue. Nobody stands in its line beside a free slot: who
// gives up a slot, or makes one, sees to it that the first in line has it.
type queue struct {
	name  string
	hooks *Hooks
	start time.Time // its clock is the time since then, which no one can set back

	closed atomic.Uint32 // why the lock is needed; 0: it is not
	first  [openSlots]slot
	shared *shared // nil: the slots are those of this process alone

	mu       sync.Mutex
	config   Config
	more     []*slot // beyond the first, made when needed
	free     *slot   // of these
	line     line
	depth    int // calls that wait, in line or for their own session's slot
	sessions map[string]*session
	spare    *waiter
	spares   int
}

func newQueue(name string, hooks *Hooks, start time.Time, c Config) *queue {
	q := &queue{name: name, hooks: hooks, start: start}
	for i := range q.first {
		s := &q.first[i]
		s.queue, s.open = q, true
		s.state.Store(absent)
	}
	q.raise(c)
	return q
}

func (q *queue) now() time.Duration { return time.Since(q.start) }

func (q *queue) at(d time.Duration) time.Time { return q.start.Add(d) }

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
	if q.line.first == nil {
		q.close(closedLine)
	}
	q.line.push(w)
}

func (q *queue) unstand(w *waiter) {
	w.inLine = false
	q.line.remove(w)
	if q.line.first == nil {
		q.open(closedLine)
	}
}

// leave takes a call out of all lines.
func (q *queue) leave(w *waiter) {
	w.waits = false
	if w.inLine {
		q.unstand(w)
	}
	if w.session != nil {
		w.session.waits.remove(w)
	}
	q.setDepth(q.depth - 1)
}

// Permit is the right to one slot, for one call. The zero Permit holds none.
type Permit struct {
	slot  *slot
	state uint64 // of the slot while the permit holds
}

// Release gives the slot back, or to the session's lease. It may be called
// more than once, also of a copy: only the first counts.
func (p Permit) Release() {
	s := p.slot
	if s == nil {
		return
	}
	if s.open && s.queue.closed.Load() == 0 {
		p.giveOpen()
	} else {
		p.giveBack(false)
	}
}

// Lost is closed if the slot, which is one of a shared queue, may be another
// call's although it was not given back: this process could not keep it. Of
// other queues it is nil.
func (p Permit) Lost() <-chan struct{} {
	if p.slot == nil || p.slot.far == nil {
		return nil
	}
	return p.slot.far.lost
}

// giveOpen ends a permit without the lock. Somebody may have lined up since it
// was seen that nobody does.
func (p Permit) giveOpen() {
	if p.slot.state.CompareAndSwap(p.state, p.state-held+oneUse) && p.slot.queue.closed.Load() != 0 {
		p.slot.queue.sweep()
	}
}

// giveBack ends a permit under the lock. A call that never made use of it
// leaves no lease.
func (p Permit) giveBack(unused bool) {
	s := p.slot
	if s.far != nil {
		s.far.giveBack(p, unused)
		return
	}
	q := s.queue
	now := q.now() // not under the lock: others want it
	q.mu.Lock()
	var next *waiter
	if s.reuse(p) {
		q.keep(s)
		if s.session != nil {
			next = q.callEnded(s.session, now, unused)
		} else {
			next = q.pass(s, now)
		}
	}
	q.mu.Unlock()
	next.wake()
}

// pass hands a slot to the first in line, or to nobody.
func (q *queue) pass(s *slot, now time.Duration) *waiter {
	w := q.line.first
	if w == nil {
		q.putFree(s)
		return nil
	}
	q.leave(w)
	q.hand(w, s, now)
	if w.session != nil {
		q.grant(w.session, s, now)
	}
	return w
}

// hand gives a call that has left the line its slot.
func (q *queue) hand(w *waiter, s *slot, now time.Duration) {
	w.handed = max(now, w.since)
	s.waiter = w // has the caller: it is not copied while others want the lock
	w.permit = Permit{s, s.state.Load()}
}

// wake tells a call that it has its slot. Nobody waits for room in ready.
func (w *waiter) wake() {
	if w != nil {
		w.ready <- struct{}{}
	}
}

// Queues are the named queues of a process. Make one with New; all methods
// are safe for use from several goroutines.
type Queues struct {
	hooks  Hooks
	start  time.Time
	mu     sync.Mutex // one Configure at a time
	queues atomic.Pointer[directory]

	sharing *Sharing // nil: no queue is shared with other processes
	process string   // random: what the IDs of its tickets begin with
}

// directory is all queues at one moment. It is replaced, never changed.
type directory struct {
	few   [fewQueues]named // where there are no more
	index map[string]*queue
	list  []*queue // by name
}

type named struct {
	name  string
	queue *queue
}

// fewQueues is up to how many queues looking at each is faster than a map.
const fewQueues = 8

func newDirectory(queues map[string]*queue) *directory {
	d := &directory{index: queues}
	for i, name := range slices.Sorted(maps.Keys(queues)) {
		d.list = append(d.list, queues[name])
		if len(queues) <= fewQueues {
			d.few[i] = named{name, queues[name]}
		}
	}
	return d
}

func (d *directory) find(name string) *queue {
	for i := range d.few {
		if d.few[i].name == name {
			return d.few[i].queue
		}
		if d.few[i].queue == nil {
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

// EndSession ends all leases of a session and hands their slots on, those of
// shared queues soon after. One whose call is under way ends with that call.
func (q *Queues) EndSession(session string) {
	for _, in := range q.queues.Load().list {
		if in.shared != nil {
			in.shared.endSession(session)
		} else {
			in.endSession(session)
		}
	}
}
