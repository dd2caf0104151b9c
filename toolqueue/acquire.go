package toolqueue

import (
	"context"
	"time"
)

// Acquire takes a slot of a queue, waiting in line where none is free. The
// error is an *Error; after one, there is nothing to release.
func (q *Queues) Acquire(ctx context.Context, queue string, who Who) (Permit, error) {
	return q.acquire(ctx, queue, who, untilItsTurn)
}

// TryAcquire takes a slot if one is free now. It does not wait in line; a queue
// that is shared is asked once where its slots are kept, which takes a moment.
func (q *Queues) TryAcquire(queue string, who Who) (Permit, bool) {
	p, err := q.AcquireWithin(context.Background(), queue, who, 0)
	return p, err == nil
}

// AcquireWithin is Acquire with a bound on the wait, where it is shorter than
// the queue's own. With 0 or less, as of a deadline that has passed, the call
// does not wait at all: where no slot is free the error is ErrTimeout. A wait with
// a bound allocates a timer; all else here allocates nothing in the long run.
func (q *Queues) AcquireWithin(ctx context.Context, queue string, who Who, maxWait time.Duration) (Permit, error) {
	if maxWait <= 0 {
		maxWait = notAtAll
	}
	return q.acquire(ctx, queue, who, maxWait)
}

func (q *Queues) acquire(ctx context.Context, queue string, who Who, maxWait time.Duration) (Permit, error) {
	in := q.queues.Load().find(queue)
	if in != nil && in.closed.Load() == 0 && ctx.Err() == nil {
		if p, ok := in.tryOpen(&who); ok {
			return p, nil
		}
	}
	if in == nil {
		return Permit{}, q.unknown(queue, who)
	}
	return in.acquire(ctx, who, maxWait)
}

// How long a call waits that sets no time for it. The queue may set one for the
// first.
const (
	untilItsTurn time.Duration = 0
	notAtAll     time.Duration = -1
)

func (q *Queues) unknown(queue string, who Who) error {
	q.hooks.refused(queue, who, ReasonUnknown, 0)
	return &Error{Queue: queue, Reason: ReasonUnknown, Err: ErrUnknown}
}

// acquire is Acquire with the queue's lock.
func (q *queue) acquire(ctx context.Context, who Who, maxWait time.Duration) (Permit, error) {
	if q.shared != nil {
		return q.shared.acquire(ctx, who, maxWait)
	}
	if ctx.Err() != nil {
		return Permit{}, q.refuse(who, ReasonCancelled, cancelled(ctx), 0)
	}
	now := q.now() // not under the lock: others want it
	q.mu.Lock()
	p, next, s := q.enter(&who, now)
	if p.slot != nil {
		q.mu.Unlock()
		next.wake()
		return p, nil
	}
	if why, err := q.barred(maxWait); err != nil {
		q.forget(s)
		if q.line.first == nil {
			q.open(closedLine)
		}
		q.mu.Unlock()
		next.wake()
		return Permit{}, q.refuse(who, why, err, 0)
	}
	w := q.newWaiter(&who, s, now)
	q.enqueue(w)
	t := wait{queue: q, waiter: w, who: who, use: w.use, depth: q.depth, concurrent: q.config.Concurrent, most: q.config.within(maxWait)}
	q.mu.Unlock()
	next.wake()
	return t.run(ctx)
}

// barred is why a call may not line up, if it may not. It needs the lock.
func (q *queue) barred(maxWait time.Duration) (Reason, error) {
	switch most := q.config.MaxWaiters; {
	case maxWait == notAtAll:
		return ReasonTimeout, ErrTimeout
	case most > 0 && q.depth >= most:
		return ReasonFull, ErrFull
	}
	return "", nil
}

// within is how long a call may wait that itself would wait for at most maxWait.
func (c *Config) within(maxWait time.Duration) time.Duration {
	if maxWait == notAtAll {
		return notAtAll
	}
	if c.MaxWait > 0 && (maxWait <= 0 || c.MaxWait < maxWait) {
		return c.MaxWait
	}
	return maxWait
}

// enter takes a slot for a call where it need not wait. Else it returns its
// session, if it has one. The waiter is one to be woken.
func (q *queue) enter(who *Who, now time.Duration) (Permit, *waiter, *session) {
	s := q.sessionOf(who)
	var next *waiter
	if s != nil && s.slot != nil && !s.busy {
		var p Permit
		if p, next = q.resume(s, who, now); p.slot != nil {
			return p, nil, s
		}
		s = q.sessionOf(who)
	}
	if q.line.first != nil || s != nil && s.slot != nil {
		return Permit{}, next, s
	}
	q.close(closedLine) // who gives a slot back from now on will look for us
	slot := q.takeFree()
	if slot == nil {
		return Permit{}, next, s
	}
	q.open(closedLine)
	if s == nil {
		return slot.occupy(who), next, s
	}
	who.Since = q.at(now)
	q.grant(s, slot, now)
	return slot.occupy(who), next, s
}

// wait is one call's wait in line.
type wait struct {
	queue             *queue
	waiter            *waiter
	who               Who
	use               uint64 // of the waiter
	depth, concurrent int    // when it began
	most              time.Duration
}

// run stays in line until the call has its slot, or may wait no longer.
func (t *wait) run(ctx context.Context) (Permit, error) {
	q, w := t.queue, t.waiter
	returns := false
	defer func() {
		if !returns { // a hook panicked: the line must not hand a slot to nobody
			if p := t.leave(); p.slot != nil {
				p.giveBack(true)
			}
		}
	}()
	if q.hooks.Queued != nil {
		q.hooks.Queued(q.name, t.who, t.depth, t.concurrent)
	}
	if t.who.Waits != nil {
		t.who.Waits(Waiting{w: w, use: t.use})
	}
	p, err := t.end(ctx, t.sleep(ctx))
	returns = true
	return p, err
}

// sleep returns once the slot is there, or with why the wait is over.
func (t *wait) sleep(ctx context.Context) Reason {
	done := ctx.Done()
	if t.most <= 0 && done == nil { // much cheaper than a select
		<-t.waiter.ready
		return ""
	}
	var timeout <-chan time.Time
	if t.most > 0 {
		timeout = time.After(t.most)
	}
	select {
	case <-t.waiter.ready:
		return ""
	case <-done:
		return ReasonCancelled
	case <-timeout:
		return ReasonTimeout
	}
}

// end is the outcome of a wait that is over for a reason, or for none because
// the slot is there. A call that gives up may have been handed a slot at the
// last moment: one that was cancelled hands it on, any other is glad of it.
func (t *wait) end(ctx context.Context, reason Reason) (Permit, error) {
	q, w := t.queue, t.waiter
	var p Permit
	if reason == "" {
		p = w.permit
	} else {
		p = t.leave()
	}
	if p.slot != nil && ctx.Err() == nil {
		if q.hooks.Waited != nil {
			q.hooks.Waited(q.name, t.who, w.handed-w.since)
		}
		return p, nil
	}
	waited := q.now() - w.since
	if p.slot == nil && reason == ReasonTimeout {
		return Permit{}, q.refuse(t.who, reason, ErrTimeout, waited)
	}
	if p.slot != nil {
		p.giveBack(true)
	}
	return Permit{}, q.refuse(t.who, ReasonCancelled, cancelled(ctx), waited)
}

// leave takes the call out of line, or returns what it was handed.
func (t *wait) leave() Permit {
	q, w := t.queue, t.waiter
	q.mu.Lock()
	defer q.mu.Unlock()
	if w.use != t.use {
		return Permit{} // another call's by now
	}
	if w.waits {
		q.leave(w)
		q.forget(w.session)
	} else if s := w.permit.slot; s != nil {
		s.waiter = nil // not to be used again: its token may still be on the way
	}
	return w.permit
}

// refuse says why a call gets no slot.
func (q *queue) refuse(who Who, reason Reason, err error, waited time.Duration) error {
	q.hooks.refused(q.name, who, reason, waited)
	q.mu.Lock()
	defer q.mu.Unlock()
	return &Error{Queue: q.name, Reason: reason, Waited: waited, Depth: q.depth, Concurrent: q.config.Concurrent, Err: err}
}

func (h *Hooks) refused(queue string, who Who, reason Reason, waited time.Duration) {
	if h.Refused != nil {
		h.Refused(queue, who, reason, waited)
	}
}
