package toolqueue

import (
	"cmp"
	"context"
	"strconv"
	"time"
)

const (
	// pollInterval is how often waiters poll without a signal.
	pollInterval = 250 * time.Millisecond
	// With signals they poll after minPollDelay, and up to maxPollDelay while nothing changes.
	minPollDelay = 10 * time.Millisecond
	maxPollDelay = 80 * time.Millisecond
	// Bounds of the delay after a failed step.
	minBackoff = 100 * time.Millisecond
	maxBackoff = time.Second
)

// shared is a queue whose holders and waiters are stored in a backend. Its fields are guarded
// by the queue's lock.
//
// One goroutine (shared_step.go) sends the requests of this process in consecutive steps; it
// runs while there is something to do or to renew. A step with an unknown outcome is repeated;
// a process that cannot complete one counts its slots as lost.
type shared struct {
	queue   *queue
	backend SharedBackend
	owner   string
	lease   time.Duration
	ids     string // prefix of its ticket IDs
	last    int64  // number of the newest ticket

	calls    map[string]*remoteCall // tickets of this process: waiting, in use or idle
	entering []*remoteCall          // calls not in an answer yet
	leaving  []pendingOp
	idling   []pendingOp // leased ones whose call ended
	unused   []pendingOp
	ends     []pendingOp // sessions
	gates    []pendingGate

	tickets  []Ticket // as of seenAt
	limits   []SharedLimit
	clock    time.Time // of the snapshot
	seenAt   time.Time
	lastErr  error         // of the newest step; nil: success
	answered chan struct{} // closed by the next answer, success or not

	running    bool          // the goroutine runs
	wake       chan struct{} // wakes it
	stopped    chan struct{} // closed when it ends
	signalled  bool
	pollDelay  time.Duration // minimum delay of polls due to signals
	wantStatus bool          // a status request waits for a step
	closed     bool
	steppedAt  time.Time // end of the newest step
	retryAt    time.Time // not before
	backoff    time.Duration
	lossTimer  *time.Timer // runs checkLoss
}

// pendingOp is a request about a ticket or session, repeated until the ticket would have
// expired.
type pendingOp struct {
	id    string
	until time.Time
}

// remoteCall is a ticket of this process.
type remoteCall struct {
	shared    *shared
	id        string
	who       Who
	leased    bool
	state     remoteState
	sent      bool      // a step with it was sent
	renewedAt time.Time // when the last step that renewed it was sent
	renewing  bool      // the step in flight renews it
	lost      chan struct{}
	isLost    bool // lost is closed
	reason    Reason
	err       error
	waited    bool          // the wait was reported
	slot      slot          // of its permit
	changed   chan struct{} // one token per state change
}

type remoteState int

const (
	remoteEntering remoteState = iota // not in an answer yet
	remoteWaiting
	remoteHolding
	remoteIdle // a lease without a call
	remoteDone // no ticket: refused, given up or released
)

func newShared(q *queue, s *Sharing, process string) *shared {
	return &shared{
		queue: q, backend: s.Backend, owner: s.Owner, lease: s.Lease, ids: process + "." + q.name + ".",
		calls: map[string]*remoteCall{}, answered: make(chan struct{}), wake: make(chan struct{}, 1),
	}
}

// lossAfter returns how long after a renewal a ticket certainly exists. The rest of the lease is
// for running calls to end, and for clock differences.
func (s *shared) lossAfter() time.Duration { return s.lease / 5 * 4 }

// enter adds a call to the next step.
func (s *shared) enter(who Who) *remoteCall {
	s.last++
	c := &remoteCall{
		shared: s, id: s.ids + strconv.FormatInt(s.last, 36), who: who, leased: s.queue.config.Lease.Idle > 0 && who.Session != "",
		renewedAt: time.Now(), lost: make(chan struct{}), changed: make(chan struct{}, 1),
	}
	c.slot.queue, c.slot.remote = s.queue, c
	c.slot.state.Store(nextUse + held)
	s.calls[c.id] = c
	s.entering = append(s.entering, c)
	s.armLossTimer()
	s.ensureRunning()
	return c
}

func (c *remoteCall) permit() Permit { return Permit{&c.slot, nextUse + held} }

func (c *remoteCall) ticket() Ticket {
	w := &c.who
	return Ticket{ID: c.id, Owner: c.shared.owner, Session: w.Session, Agent: w.Agent, Tool: w.Tool, Execution: w.Execution, Key: c.shared.keyOf(w), Leased: c.leased}
}

// setState changes the state of a call and signals it. The depth given to hooks is that of this
// process.
func (s *shared) setState(c *remoteCall, to remoteState) {
	from := c.state
	c.state = to
	if (from == remoteWaiting) != (to == remoteWaiting) {
		s.queue.setDepth(s.queue.depth + map[bool]int{true: 1, false: -1}[to == remoteWaiting])
	}
	if to == remoteDone {
		delete(s.calls, c.id)
	}
	select {
	case c.changed <- struct{}{}:
	default:
	}
}

// giveBack ends the use of a permit.
func (c *remoteCall) giveBack(p Permit, unused bool) {
	s := c.shared
	s.queue.mu.Lock()
	defer s.queue.mu.Unlock()
	if !c.slot.reuse(p) || s.calls[c.id] != c {
		return // the ticket no longer exists
	}
	if c.leased && !unused && !c.isLost && !s.closed {
		s.setState(c, remoteIdle)
		s.idling = append(s.idling, s.newOp(c.id))
		s.ensureRunning()
		return
	}
	s.drop(c)
}

// drop removes a ticket. An unused leased one leaves the slot to the other calls of its
// session.
func (s *shared) drop(c *remoteCall) {
	switch {
	case !c.sent: // the backend does not know it
	case c.leased && !c.isLost && !s.closed:
		s.unused = append(s.unused, s.newOp(c.id))
	default:
		s.leaving = append(s.leaving, s.newOp(c.id))
	}
	if c.state == remoteEntering {
		s.entering = without(s.entering, c)
	}
	s.setState(c, remoteDone)
	s.ensureRunning()
}

// refuse ends the wait of a call with an error.
func (s *shared) refuse(c *remoteCall, why Reason, err error) {
	c.reason, c.err = why, err
	s.drop(c)
}

func without(calls []*remoteCall, c *remoteCall) []*remoteCall {
	for i := range calls {
		if calls[i] == c {
			return append(calls[:i:i], calls[i+1:]...)
		}
	}
	return calls
}

func (s *shared) newOp(id string) pendingOp { return pendingOp{id, time.Now().Add(s.lease)} }

// markLost tells a running call that its slot may be lost, and refuses a waiting one.
func (s *shared) markLost(c *remoteCall) {
	switch c.state {
	case remoteHolding:
		if !c.isLost {
			c.isLost = true
			close(c.lost)
		}
	case remoteEntering, remoteWaiting:
		s.refuse(c, ReasonUnavailable, cmp.Or(s.lastErr, errNoAnswer))
	}
}

// armLossTimer sets the timer for the ticket that was renewed first.
func (s *shared) armLossTimer() {
	var first time.Time
	for _, c := range s.calls {
		if c.state != remoteIdle && !c.isLost && (first.IsZero() || c.renewedAt.Before(first)) {
			first = c.renewedAt
		}
	}
	switch {
	case first.IsZero():
		if s.lossTimer != nil {
			s.lossTimer.Stop()
		}
	case s.lossTimer == nil:
		s.lossTimer = time.AfterFunc(time.Until(first.Add(s.lossAfter())), s.checkLoss)
	default:
		s.lossTimer.Reset(time.Until(first.Add(s.lossAfter())))
	}
}

func (s *shared) checkLoss() {
	s.queue.mu.Lock()
	defer s.queue.mu.Unlock()
	for _, c := range s.calls {
		if time.Since(c.renewedAt) >= s.lossAfter() {
			s.markLost(c)
		}
	}
	s.armLossTimer()
}

func (s *shared) signal() {
	s.queue.mu.Lock()
	defer s.queue.mu.Unlock()
	if s.running && !s.signalled {
		s.signalled = true
		s.notify()
	}
}

// endSession ends the lease of a session, in any process.
func (s *shared) endSession(session string) {
	s.queue.mu.Lock()
	defer s.queue.mu.Unlock()
	if s.queue.config.Lease.Idle > 0 && !s.closed {
		s.ends = append(s.ends, s.newOp(session))
		s.ensureRunning()
	}
}

// close drops all tickets.
func (s *shared) close() {
	s.queue.mu.Lock()
	defer s.queue.mu.Unlock()
	s.closed = true
	for _, c := range s.calls {
		if c.state == remoteHolding {
			s.markLost(c) // a running call is told
		}
		s.refuse(c, ReasonUnavailable, errClosed)
	}
	s.armLossTimer()
}

// idle waits until all requests are sent, or ctx ends.
func (s *shared) idle(ctx context.Context) error {
	s.queue.mu.Lock()
	driving, gone := s.running, s.stopped
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
