package toolqueue

import (
	"context"
	"time"
)

// Acquire takes a slot of a queue, and waits if none is free. The error is an *Error; after an
// error there is nothing to release.
func (q *Queues) Acquire(ctx context.Context, queue string, who Who) (Permit, error) {
	return q.acquire(ctx, queue, who, noBound)
}

// TryAcquire takes a slot if one is free. It does not wait for one; for a shared queue it makes
// one call to the backend.
func (q *Queues) TryAcquire(queue string, who Who) (Permit, bool) {
	p, err := q.AcquireWithin(context.Background(), queue, who, 0)
	return p, err == nil
}

// AcquireWithin is Acquire with a bound on the wait, if it is shorter than that of the queue.
// With 0 or less, such as the rest of an expired deadline, the call does not wait: if no slot is
// free the error is ErrTimeout. A bounded wait allocates a timer; otherwise nothing is allocated
// in the steady state.
func (q *Queues) AcquireWithin(ctx context.Context, queue string, who Who, maxWait time.Duration) (Permit, error) {
	if maxWait <= 0 {
		maxWait = noWait
	}
	return q.acquire(ctx, queue, who, maxWait)
}

func (q *Queues) acquire(ctx context.Context, queue string, who Who, maxWait time.Duration) (Permit, error) {
	in := q.queues.Load().find(queue)
	if in != nil && !in.mustLock() && ctx.Err() == nil {
		if p, ok := in.tryFast(&who); ok {
			return p, nil
		}
	}
	if in == nil {
		return Permit{}, q.unknown(queue, who)
	}
	return in.acquire(ctx, who, maxWait)
}

// Values of maxWait. noBound leaves the bound to the queue.
const (
	noBound time.Duration = 0
	noWait  time.Duration = -1
)

func (q *Queues) unknown(queue string, who Who) error {
	q.hooks.refused(queue, who, ReasonUnknown, 0)
	return &Error{Queue: queue, Reason: ReasonUnknown, Err: ErrUnknown}
}

// acquire acquires under the lock.
func (q *queue) acquire(ctx context.Context, who Who, maxWait time.Duration) (Permit, error) {
	if q.shared != nil {
		return q.shared.acquire(ctx, who, maxWait)
	}
	if ctx.Err() != nil {
		return Permit{}, q.refuse(who, ReasonCancelled, cancelled(ctx), 0)
	}
	if q.keys != nil {
		return q.keys.acquire(ctx, who, maxWait)
	}
	now := q.now() // not under the lock, to keep it short
	q.mu.Lock()
	if q.limited() {
		now = q.now() // tokens are taken in the order of their times
	}
	p, next, s := q.tryEnter(&who, now)
	if p.slot != nil {
		q.mu.Unlock()
		next.wake()
		return p, nil
	}
	if why, err := q.checkLimits(maxWait); err != nil {
		held := q.held(q.depth+1, s != nil && s.blocked, now)
		q.forget(s)
		if q.waiters.first == nil {
			q.allowFast(lockWaiters)
		}
		q.mu.Unlock()
		next.wake()
		return Permit{}, q.refuseHeld(who, why, err, 0, held)
	}
	w := q.newWaiter(&who, s, now)
	q.enqueue(w)
	q.arm(now)
	t := wait{queue: q, waiter: w, who: who, generation: w.generation, depth: q.depth, concurrent: q.config.Concurrent, timeout: q.config.boundWait(maxWait)}
	q.mu.Unlock()
	next.wake()
	return t.run(ctx)
}

// checkLimits returns why a call may not wait; "" if it may. It needs the lock.
func (q *queue) checkLimits(maxWait time.Duration) (Reason, error) {
	switch most := q.config.MaxWaiters; {
	case maxWait == noWait:
		return ReasonTimeout, ErrTimeout
	case most > 0 && q.depth >= most:
		return ReasonFull, ErrFull
	}
	return "", nil
}

// boundWait returns the lower of the bounds of a call and the queue.
func (c *Config) boundWait(maxWait time.Duration) time.Duration {
	if maxWait == noWait {
		return noWait
	}
	if c.MaxWait > 0 && (maxWait <= 0 || c.MaxWait < maxWait) {
		return c.MaxWait
	}
	return maxWait
}

// tryEnter takes a slot if the call need not wait, else it returns the call's session, if any.
// The waiter must be woken.
func (q *queue) tryEnter(who *Who, now time.Duration) (Permit, *waiter, *session) {
	s := q.sessionOf(who)
	var next *waiter
	if s != nil && s.slot != nil && !s.busy && !s.blocked {
		var p Permit
		if p, next = q.resume(s, who, now); p.slot != nil {
			return p, nil, s
		}
		s = q.sessionOf(who)
	}
	if q.waits() || s != nil && s.slot != nil {
		return Permit{}, next, s
	}
	q.requireLock(lockWaiters) // later releases take the lock
	if q.opensAt(now) > now {
		return Permit{}, next, s
	}
	slot := q.takeFree()
	if slot == nil {
		return Permit{}, next, s
	}
	q.begin(now)
	q.allowFast(lockWaiters)
	q.lend(now)
	if s == nil {
		return slot.occupy(who), next, s
	}
	who.Since = q.at(now)
	q.startLease(s, slot, now)
	return slot.occupy(who), next, s
}

// wait is the wait of one call.
type wait struct {
	queue             *queue
	waiter            *waiter
	who               Who
	generation        uint64 // of the waiter
	depth, concurrent int    // at the start
	timeout           time.Duration
}

// run waits until the call has its slot or gives up.
func (t *wait) run(ctx context.Context) (Permit, error) {
	q, w := t.queue, t.waiter
	returns := false
	defer func() {
		if !returns { // a hook panicked: release the slot, if assigned
			if p := t.cancel(); p.slot != nil {
				p.release(true)
			}
		}
	}()
	if q.hooks.Queued != nil {
		q.hooks.Queued(q.name, t.who, t.depth, t.concurrent)
	}
	if t.who.Waits != nil {
		t.who.Waits(Waiting{w: w, generation: t.generation})
	}
	p, err := t.finish(ctx, t.sleep(ctx))
	returns = true
	return p, err
}

// sleep returns when the slot is assigned, or the reason to give up.
func (t *wait) sleep(ctx context.Context) Reason {
	done := ctx.Done()
	if t.timeout <= 0 && done == nil { // cheaper than a select
		<-t.waiter.ready
		return ""
	}
	var timeout <-chan time.Time
	if t.timeout > 0 {
		timeout = time.After(t.timeout)
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

// finish returns the outcome of a wait; reason "": the slot is assigned. A slot assigned at the
// last moment is kept, except by a cancelled call, which passes it on.
func (t *wait) finish(ctx context.Context, reason Reason) (Permit, error) {
	q, w := t.queue, t.waiter
	var p Permit
	var held Held
	if reason == "" {
		p = w.permit
	} else {
		held = Waiting{w: w, generation: t.generation}.Held()
		p = t.cancel()
	}
	if p.slot != nil && ctx.Err() == nil {
		if q.hooks.Waited != nil {
			q.hooks.Waited(q.name, t.who, w.grantedAt-w.since)
		}
		return p, nil
	}
	waited := q.now() - w.since
	if p.slot == nil && reason == ReasonTimeout {
		return Permit{}, q.refuseHeld(t.who, reason, ErrTimeout, waited, held)
	}
	if p.slot != nil {
		p.release(true)
	}
	return Permit{}, q.refuseHeld(t.who, ReasonCancelled, cancelled(ctx), waited, held)
}

// cancel dequeues the call, or returns the permit it was assigned.
func (t *wait) cancel() Permit {
	q, w := t.queue, t.waiter
	q.mu.Lock()
	defer q.mu.Unlock()
	if w.generation != t.generation {
		return Permit{} // reused by another call
	}
	if w.waiting {
		q.dequeue(w)
		q.forget(w.session)
	} else if s := w.permit.slot; s != nil {
		s.waiter = nil // not recycled: its token may still arrive
	}
	return w.permit
}

// refuse reports why a call gets no slot.
func (q *queue) refuse(who Who, reason Reason, err error, waited time.Duration) error {
	return q.refuseHeld(who, reason, err, waited, Held{})
}

func (q *queue) refuseHeld(who Who, reason Reason, err error, waited time.Duration, held Held) error {
	q.hooks.refused(q.name, who, reason, waited)
	q.mu.Lock()
	defer q.mu.Unlock()
	return &Error{Queue: q.name, Reason: reason, Waited: waited, Depth: q.depth, Concurrent: q.config.Concurrent, Held: held, Err: err}
}

func (h *Hooks) refused(queue string, who Who, reason Reason, waited time.Duration) {
	if h.Refused != nil {
		h.Refused(queue, who, reason, waited)
	}
}
