package toolqueue

import (
	"cmp"
	"slices"
	"strings"
	"time"
)

// A call starts when it has a slot and, if the queue has a rate, a token; both are taken at once.
// No call starts while the queue is closed. The gate is open when a call that has a slot may
// start. While the gate is closed, calls wait in order, even if their session has a slot for them,
// and one timer runs until it opens.

// Bounds of a closing.
const (
	// MaxClosed is the longest time for which a queue can be closed.
	MaxClosed = time.Hour
	// maxWhy bounds Closing.Why, in bytes.
	maxWhy = 200
)

// Closing says until when a queue starts no calls, and why. The zero Closing is an open queue.
type Closing struct {
	Until time.Time
	Why   string    // for people
	Since time.Time // when it began; set by the queue
}

// limited reports whether calls need more than a slot.
func (q *queue) limited() bool { return q.lockReasons.Load()&(hasRate|lockClosed) != 0 }

// opensAt returns when the next call may start; the gate is open if that is now or earlier. It
// needs the lock.
func (q *queue) opensAt(now time.Duration) time.Duration {
	if !q.limited() {
		return now
	}
	if q.closedUntil > 0 && q.closedUntil <= now {
		q.reopen()
	}
	at := max(now, q.closedUntil)
	if q.bucket.every > 0 {
		q.settle(now)
		at = max(at, q.bucket.next(q.full, now))
	}
	return at
}

// begin takes the token of a call that starts now, unless the gate is closed. It needs the lock.
func (q *queue) begin(now time.Duration) bool {
	if q.opensAt(now) > now {
		return false
	}
	q.full, _ = q.bucket.take(q.full, now)
	return true
}

// arm sets the timer if calls wait and the gate is closed. It needs the lock.
func (q *queue) arm(now time.Duration) {
	if q.armed || !q.waits() {
		return
	}
	at := q.opensAt(now)
	if at <= now {
		return
	}
	q.armed = true
	if q.gateTimer == nil {
		q.gateTimer = time.AfterFunc(at-now, q.gateOpens)
	} else {
		q.gateTimer.Reset(at - now)
	}
}

// disarm stops the timer, because the gate opens at another time. It needs the lock.
func (q *queue) disarm() {
	if q.armed {
		q.gateTimer.Stop()
		q.armed = false
	}
}

func (q *queue) gateOpens() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.armed = false
	q.admit()
}

// waits reports whether a waiting call can be started by a token or an opening. It needs the lock.
func (q *queue) waits() bool { return q.waiters.first != nil || len(q.blocked) > 0 }

// admit starts the calls that may start, in order. It needs the lock.
func (q *queue) admit() {
	for q.waits() {
		now := q.now()
		if q.opensAt(now) > now {
			q.arm(now)
			return
		}
		if !q.startNext(now) {
			return
		}
	}
}

// startNext starts the call that has waited longest among those that have a slot. The gate must
// be open. It reports whether it started one.
func (q *queue) startNext(now time.Duration) bool {
	b := q.firstBlocked()
	if w := q.waiters.first; w != nil && (b == nil || w.since <= b.waiters.first.since) {
		if s := q.takeFree(); s != nil {
			q.recycle(s)
			q.begin(now)
			q.grant(w, s, now)
			w.wake()
			return true
		}
	}
	switch {
	case b == nil:
		return false
	case now >= q.heldUntil(b):
		q.endLease(b, now).wake()
		return true
	}
	q.begin(now)
	q.unblock(b)
	w := b.waiters.first
	q.dequeue(w)
	q.assign(w, b.slot, now)
	b.busy = true
	w.wake()
	return true
}

// block records a lease whose next call waits for the gate. It needs the lock.
func (q *queue) block(s *session) {
	s.blocked, s.busy = true, false
	q.blocked = append(q.blocked, s)
	q.setExpiry(s, q.heldUntil(s))
}

func (q *queue) unblock(s *session) {
	if !s.blocked {
		return
	}
	s.blocked = false
	q.blocked = slices.DeleteFunc(q.blocked, func(x *session) bool { return x == s })
	if s.timer != nil {
		s.timer.Stop()
	}
}

func (q *queue) firstBlocked() *session {
	if len(q.blocked) == 0 {
		return nil
	}
	return slices.MinFunc(q.blocked, func(a, b *session) int { return cmp.Compare(a.waiters.first.since, b.waiters.first.since) })
}

// CloseUntil stops a queue from starting calls until a time, at most MaxClosed from now. Calls
// wait, and Waiting.Held says why. Running calls continue. If the queue is already closed, the
// later time counts. key selects the key (Who.Key) if each key has its own limits, else it is
// ignored. why is for people; it is cut after 200 bytes.
//
// A shared queue is closed for all processes, soon after. The error is an *Error that matches
// ErrUnknown if there is no such queue.
func (q *Queues) CloseUntil(queue, key string, until time.Time, why string) error {
	return q.gate(queue, key, Closing{Until: until, Why: why})
}

// Open reopens a closed queue, also before its time. See CloseUntil.
func (q *Queues) Open(queue, key string) error { return q.gate(queue, key, Closing{}) }

func (q *Queues) gate(name, key string, c Closing) error {
	in := q.queues.Load().find(name)
	if in == nil {
		return &Error{Queue: name, Reason: ReasonUnknown, Err: ErrUnknown}
	}
	if len(c.Why) > maxWhy {
		c.Why = strings.ToValidUTF8(c.Why[:maxWhy], "")
	}
	switch {
	case in.shared != nil:
		in.shared.gate(key, c)
	case in.keys == nil:
		in.close(c)
	default:
		in.keys.with(key, c == Closing{}, func(of *queue) { of.close(c) })
	}
	return nil
}

// close closes the queue, or opens it if c is zero.
func (q *queue) close(c Closing) {
	q.mu.Lock()
	defer q.mu.Unlock()
	now := q.now()
	q.disarm()
	if c == (Closing{}) {
		q.reopen()
		q.admit()
		return
	}
	if until := min(c.Until.Sub(q.start), now+MaxClosed); until > max(now, q.closedUntil) {
		if q.closedUntil <= now {
			q.closedSince = now
		}
		q.closedUntil, q.closedWhy = until, c.Why
		q.requireLock(lockClosed)
		q.settle(now)
	}
	q.arm(now)
}

// reopen ends a closing. It needs the lock.
func (q *queue) reopen() {
	q.closedUntil, q.closedWhy = 0, ""
	q.allowFast(lockClosed)
}

// Held says what blocks a waiting call, other than the calls before it. The zero Held means that
// it waits for a slot.
type Held struct {
	// Until is when the call may start if it gets a slot: when the queue opens, or the earliest
	// time at which its token is available. Zero: it waits for a slot.
	Until  time.Time
	Closed bool   // blocked by a closed queue, else by the rate
	Why    string // of the closing
}

// held returns what blocks the call at a position. blocked: it has a slot. It needs the lock.
func (q *queue) held(position int, blocked bool, now time.Duration) Held {
	at := q.opensAt(now)
	switch {
	case position < 1 || at <= now:
		return Held{}
	case q.closedUntil > now:
		return Held{q.at(q.closedUntil), true, q.closedWhy}
	case !blocked && !q.hasFree():
		return Held{}
	}
	return Held{Until: q.at(at + time.Duration(position-1)*q.config.Rate.Every())}
}

// Limit is the state of the limits of one key, or of the whole queue.
type Limit struct {
	Key    string // "" for a queue without keys, and for calls without a key
	InUse  int
	Depth  int
	Tokens int       // starts that the rate allows now; 0 without a rate
	Next   time.Time // when the next token is available; zero: one is available, or there is no rate
	Closed Closing
}

// limit returns the state for Status. It needs the lock.
func (q *queue) limit() Limit {
	now := q.now()
	l := Limit{Key: q.key, Depth: q.depth}
	if r := q.config.Rate; r.N > 0 {
		full := q.fullAt(now)
		l.Tokens = r.Tokens(full, now)
		if next := r.Next(full, now); next > now {
			l.Next = q.at(next)
		}
	}
	if q.closedUntil > now {
		l.Closed = Closing{q.at(q.closedUntil), q.closedWhy, q.at(q.closedSince)}
	}
	return l
}
