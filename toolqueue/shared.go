package toolqueue

import (
	"cmp"
	"context"
	"strconv"
	"time"
)

const (
	// pollEvery is how often those who wait look, should no sign come.
	pollEvery = 250 * time.Millisecond
	// Should signs come all the time, they look every stirFirst, and every
	// stirMost where nothing that they find has changed.
	stirFirst = 10 * time.Millisecond
	stirMost  = 80 * time.Millisecond
	// retryFirst and retryMost bound the pause after a step that failed.
	retryFirst = 100 * time.Millisecond
	retryMost  = time.Second
)

// shared is a queue whose slots and line are kept far. Its fields are guarded
// by the queue's lock.
//
// All that the calls of this process want goes into one step after the other,
// taken by one goroutine (step.go), which is there while there is something to
// do or to keep. A step of which nobody knows whether it was taken is taken
// again; a process that cannot take any counts as lost what it holds.
type shared struct {
	queue *queue
	far   SharedBackend
	owner string
	lease time.Duration
	ids   string // what the IDs of its tickets begin with
	last  int64  // number of the newest

	calls  map[string]*farCall // tickets of this process: in line, in use or idle
	enters []*farCall          // of which no step has told yet
	leave  []farewell
	idles  []farewell // leased ones whose call ended
	unused []farewell
	ends   []farewell // sessions

	rows    []Ticket // as last heard
	seen    time.Time
	trouble error         // of the newest step; nil: it was taken
	heard   chan struct{} // closed by the next answer, good or bad

	driving bool          // the goroutine is there
	wake    chan struct{} // has it look again
	gone    chan struct{} // closed when it ends
	stirred bool
	calm    time.Duration // what stirs is not looked at before that time
	look    bool          // someone wants to see the queue
	closed  bool
	stepped time.Time // when the newest step was taken
	retry   time.Time // not before
	pause   time.Duration
	lapse   *time.Timer // counts as lost what could not be kept
}

// farewell is a word about a ticket that matters for as long as the ticket
// could be there.
type farewell struct {
	id    string
	until time.Time
}

// farCall is a ticket of this process.
type farCall struct {
	shared *shared
	id     string
	who    Who
	leased bool
	state  farState
	sent   bool      // a step with it was tried
	kept   time.Time // from when on it lasts for the lease: when the step was sent that kept it
	keeps  bool      // the step under way keeps it
	lost   chan struct{}
	gone   bool // lost is closed
	reason Reason
	err    error
	waited bool          // it was told that it waits
	slot   slot          // that of its permit
	news   chan struct{} // one token whenever the state is another
}

type farState int

const (
	farEnters farState = iota // no step has told of it
	farWaits
	farHolds
	farIdles // a lease without a call
	farOut   // no ticket: refused, given up or given back
)

func newShared(q *queue, s *Sharing, process string) *shared {
	return &shared{
		queue: q, far: s.Backend, owner: s.Owner, lease: s.Lease, ids: process + "." + q.name + ".",
		calls: map[string]*farCall{}, heard: make(chan struct{}), wake: make(chan struct{}, 1),
	}
}

// within is for how long after a step was sent its tickets are surely there.
// The rest of the lease is for the calls under way to end in, and for clocks
// that do not agree.
func (s *shared) within() time.Duration { return s.lease / 5 * 4 }

// enter puts a call into the next step.
func (s *shared) enter(who Who) *farCall {
	s.last++
	c := &farCall{
		shared: s, id: s.ids + strconv.FormatInt(s.last, 36), who: who, leased: s.queue.config.Lease.Idle > 0 && who.Session != "",
		kept: time.Now(), lost: make(chan struct{}), news: make(chan struct{}, 1),
	}
	c.slot.queue, c.slot.far = s.queue, c
	c.slot.state.Store(oneUse + held)
	s.calls[c.id] = c
	s.enters = append(s.enters, c)
	s.watch()
	s.drive()
	return c
}

func (c *farCall) permit() Permit { return Permit{&c.slot, oneUse + held} }

// ticket is what enters.
func (c *farCall) ticket() Ticket {
	w := &c.who
	return Ticket{ID: c.id, Owner: c.shared.owner, Session: w.Session, Agent: w.Agent, Tool: w.Tool, Execution: w.Execution, Leased: c.leased}
}

// turn changes the state of a call and tells it. The depth that hooks are told
// is that of this process.
func (s *shared) turn(c *farCall, to farState) {
	from := c.state
	c.state = to
	if (from == farWaits) != (to == farWaits) {
		s.queue.setDepth(s.queue.depth + map[bool]int{true: 1, false: -1}[to == farWaits])
	}
	if to == farOut {
		delete(s.calls, c.id)
	}
	select {
	case c.news <- struct{}{}:
	default:
	}
}

// giveBack ends the use of a permit.
func (c *farCall) giveBack(p Permit, unused bool) {
	s := c.shared
	s.queue.mu.Lock()
	defer s.queue.mu.Unlock()
	if !c.slot.reuse(p) || s.calls[c.id] != c {
		return // there is no ticket any more
	}
	if c.leased && !unused && !c.gone && !s.closed {
		s.turn(c, farIdles)
		s.idles = append(s.idles, s.farewell(c.id))
		s.drive()
		return
	}
	s.forget(c)
}

// forget takes back a ticket, wherever it is. A leased one whose call never
// was leaves the slot to the other calls of its session.
func (s *shared) forget(c *farCall) {
	switch {
	case !c.sent: // nobody has heard of it
	case c.leased && !c.gone && !s.closed:
		s.unused = append(s.unused, s.farewell(c.id))
	default:
		s.leave = append(s.leave, s.farewell(c.id))
	}
	if c.state == farEnters {
		s.enters = without(s.enters, c)
	}
	s.turn(c, farOut)
	s.drive()
}

// refuse ends the wait of a call.
func (s *shared) refuse(c *farCall, why Reason, err error) {
	c.reason, c.err = why, err
	s.forget(c)
}

func without(calls []*farCall, c *farCall) []*farCall {
	for i := range calls {
		if calls[i] == c {
			return append(calls[:i:i], calls[i+1:]...)
		}
	}
	return calls
}

func (s *shared) farewell(id string) farewell { return farewell{id, time.Now().Add(s.lease)} }

// lose tells a call under way that its slot may be another's, and refuses one
// that waits and has heard nothing for so long.
func (s *shared) lose(c *farCall) {
	switch c.state {
	case farHolds:
		if !c.gone {
			c.gone = true
			close(c.lost)
		}
	case farEnters, farWaits:
		s.refuse(c, ReasonAway, cmp.Or(s.trouble, errSilent))
	}
}

// watch has lose called in time. Tickets that are kept move it on.
func (s *shared) watch() {
	var first time.Time
	for _, c := range s.calls {
		if c.state != farIdles && !c.gone && (first.IsZero() || c.kept.Before(first)) {
			first = c.kept
		}
	}
	switch {
	case first.IsZero():
		if s.lapse != nil {
			s.lapse.Stop()
		}
	case s.lapse == nil:
		s.lapse = time.AfterFunc(time.Until(first.Add(s.within())), s.lapsed)
	default:
		s.lapse.Reset(time.Until(first.Add(s.within())))
	}
}

func (s *shared) lapsed() {
	s.queue.mu.Lock()
	defer s.queue.mu.Unlock()
	for _, c := range s.calls {
		if time.Since(c.kept) >= s.within() {
			s.lose(c)
		}
	}
	s.watch()
}

func (s *shared) stir() {
	s.queue.mu.Lock()
	defer s.queue.mu.Unlock()
	if s.driving && !s.stirred {
		s.stirred = true
		s.nudge()
	}
}

// endSession ends the lease of a session, in whatever process it is.
func (s *shared) endSession(session string) {
	s.queue.mu.Lock()
	defer s.queue.mu.Unlock()
	if s.queue.config.Lease.Idle > 0 && !s.closed {
		s.ends = append(s.ends, s.farewell(session))
		s.drive()
	}
}

// close gives everything back: nobody will do it after us.
func (s *shared) close() {
	s.queue.mu.Lock()
	defer s.queue.mu.Unlock()
	s.closed = true
	for _, c := range s.calls {
		if c.state == farHolds {
			s.lose(c) // it is still under way, and hears of it
		}
		s.refuse(c, ReasonAway, errClosed)
	}
	s.watch()
}

// idle returns when there is nothing more to tell, or with ctx.
func (s *shared) idle(ctx context.Context) error {
	s.queue.mu.Lock()
	driving, gone := s.driving, s.gone
	s.queue.mu.Unlock()
	if !driving {
		return nil
	}
	select {
	case <-gone:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
