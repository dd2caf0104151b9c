package toolqueue

import (
	"context"
	"time"
)

// Acquire takes a slot of a queue, waiting in line where none is free. The
// error is an *Error; after one, there is nothing to release.
func (q *Queues) Acquire(ctx context.Context, queue string, who Who) (Permit, error) {
	in := q.queues.Load().find(queue)
	if in != nil && in.closed.Load() == 0 && ctx.Err() == nil {
		if p, ok := in.tryOpen(&who); ok {
			return p, nil
		}
	}
	return q.acquire(ctx, in, queue, who, 0)
}

// AcquireWithin is Acquire with a bound on the wait, where it is shorter than
// the queue's own. 0 is no bound.
func (q *Queues) AcquireWithin(ctx context.Context, queue string, who Who, maxWait time.Duration) (Permit, error) {
	in := q.queues.Load().find(queue)
	if in != nil && in.closed.Load() == 0 && ctx.Err() == nil {
		if p, ok := in.tryOpen(&who); ok {
			return p, nil
		}
	}
	return q.acquire(ctx, in, queue, who, maxWait)
}

// acquire is Acquire with the queue's lock.
func (all *Queues) acquire(ctx context.Context, q *queue, name string, who Who, maxWait time.Duration) (Permit, error) {
	if q == nil {
		all.hooks.refused(name, who, ReasonUnknown, 0)
		return Permit{}, &Error{Queue: name, Reason: ReasonUnknown, Err: ErrUnknown}
	}
	if ctx.Err() != nil {
		return Permit{}, q.refuse(who, ReasonCancelled, cancelled(ctx), 0)
	}
	q.mu.Lock()
	p, next, s := q.enter(&who)
	if p.slot != nil {
		q.mu.Unlock()
		next.wake()
		return p, nil
	}
	if most := q.config.MaxWaiters; most > 0 && q.depth >= most {
		q.forget(s)
		if q.line.first == nil {
			q.open(closedLine)
		}
		q.mu.Unlock()
		next.wake()
		return Permit{}, q.refuse(who, ReasonFull, ErrFull, 0)
	}
	w := q.newWaiter(who, s, q.now())
	q.enqueue(w)
	waiting := Waiting{w, w.use}
	depth, concurrent := q.depth, q.config.Concurrent
	if own := q.config.MaxWait; own > 0 && (maxWait <= 0 || own < maxWait) {
		maxWait = own
	}
	q.mu.Unlock()
	next.wake()
	return q.wait(ctx, waiting, who, maxWait, depth, concurrent)
}

// enter takes a slot for a call where it need not wait. Else it returns its
// session, if it has one. The waiter is one to be woken.
func (q *queue) enter(who *Who) (Permit, *waiter, *session) {
	s := q.sessionOf(who)
	var next *waiter
	if s != nil && s.slot != nil && !s.busy {
		var p Permit
		if p, next = q.resume(s, who); p.slot != nil {
			return p, nil, s
		}
		s = q.sessionOf(who)
	}
	if q.line.first != nil || s != nil && s.slot != nil {
		return Permit{}, next, s
	}
	slot := q.takeFree()
	if slot == nil {
		// One may become free before it is seen that somebody waits.
		q.close(closedLine)
		if slot = q.takeFree(); slot == nil {
			return Permit{}, next, s
		}
		q.open(closedLine)
	}
	if s == nil {
		return slot.occupy(who), next, s
	}
	who.Since = q.at(q.now())
	p := slot.occupy(who)
	q.grant(s, slot)
	return p, next, s
}

// wait stays in line until the call has its slot, or may wait no longer.
func (q *queue) wait(ctx context.Context, waiting Waiting, who Who, maxWait time.Duration, depth, concurrent int) (p Permit, err error) {
	w := waiting.w
	settled := false
	defer func() {
		if !settled { // a hook panicked: the line must not hand a slot to nobody
			q.giveUp(w)
		}
	}()
	var timeout <-chan time.Time
	if maxWait > 0 {
		timer := time.NewTimer(maxWait)
		defer timer.Stop()
		timeout = timer.C
	}
	if q.hooks.Queued != nil {
		q.hooks.Queued(q.name, who, depth, concurrent)
	}
	if who.Waits != nil {
		who.Waits(waiting)
	}
	reason := ReasonCancelled
	select {
	case <-w.ready:
		reason = ""
	case <-ctx.Done():
	case <-timeout:
		reason = ReasonTimeout
	}
	settled = true
	return q.settle(ctx, w, who, reason)
}

// settle ends a wait. reason is empty if the slot is there. Also a call that
// gives up may have been handed a slot at the last moment: one that was
// cancelled hands it on, any other is glad of it.
func (q *queue) settle(ctx context.Context, w *waiter, who Who, reason Reason) (Permit, error) {
	q.mu.Lock()
	waited := q.now() - w.since
	p := w.permit
	if w.waits {
		q.leave(w)
		q.forget(w.session)
	}
	if p.slot != nil && reason != "" {
		q.mu.Unlock()
		<-w.ready // it comes at once
		q.mu.Lock()
	}
	q.keep(w)
	q.mu.Unlock()
	switch {
	case ctx.Err() != nil && (p.slot != nil || reason == ReasonCancelled):
		if p.slot != nil {
			p.giveBack(true)
		}
		return Permit{}, q.refuse(who, ReasonCancelled, cancelled(ctx), waited)
	case p.slot == nil:
		return Permit{}, q.refuse(who, reason, ErrTimeout, waited)
	}
	if q.hooks.Waited != nil {
		q.hooks.Waited(q.name, who, waited)
	}
	return p, nil
}

// giveUp leaves the line for good, and hands on a slot that came meanwhile.
func (q *queue) giveUp(w *waiter) {
	q.mu.Lock()
	p := w.permit
	if w.waits {
		q.leave(w)
		q.forget(w.session)
	}
	q.mu.Unlock()
	if p.slot != nil {
		p.giveBack(true)
	}
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
