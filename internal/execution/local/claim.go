package local

import (
	"context"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/internal/engine"
	"github.com/signalbox-ai/signalbox/internal/execution"
)

// applied observes durable changes. It runs on the goroutine that made the change, so it only sends signals.
func (x *Executor) applied(a *engine.Applied) {
	t := &a.Task
	if a.Kind == signalbox.EventResumed {
		x.kickAll()
		return
	}
	if t.Mode != signalbox.ModeTool {
		return
	}
	if t.CancelRequested || t.State.Terminal() {
		x.taskEnded(t)
	}
	p := x.poolOf(t.Queue)
	if p == nil {
		return
	}
	if (t.State == signalbox.Pending && (t.Ready || a.Partial)) || (a.From.InFlight() && !t.State.InFlight()) {
		p.wake.Send()
	}
}

// taskEnded stops the run of a task that is to be stopped, or the call of a task that ended while the call
// waited.
func (x *Executor) taskEnded(t *signalbox.Task) {
	x.mu.Lock()
	r, w := x.runs[t.ID], x.waiters[t.ID]
	switch {
	case t.State.Terminal():
		delete(x.cancelledEarly, t.ID)
	case r == nil && t.State.InFlight() && x.started:
		x.cancelledEarly[t.ID] = true
	}
	x.mu.Unlock()
	if r != nil && r.Fence == t.Fence {
		r.stop(errCancelled)
	}
	if w != nil {
		w.stop(errCancelled)
	}
}

func (x *Executor) poolOf(queue string) *pool {
	for _, p := range x.pools {
		if p.queue == queue {
			return p
		}
	}
	return nil
}

// claimLoop claims whenever it is woken, until no task is left or no slot is free.
func (x *Executor) claimLoop(p *pool, slots int) {
	for {
		select {
		case <-x.claimCtx.Done():
			return
		case <-p.wake:
		}
		for x.claimOne(p, slots) {
			continue
		}
	}
}

// claimOne claims one task and starts it, on its own goroutine or on that of the waiting
// call. It reports whether to continue.
func (x *Executor) claimOne(p *pool, slots int) bool {
	if !x.begin(p) {
		return false
	}
	row := p.row
	row.Slots = slots
	// Even if the claim is cancelled, the store may have made it.
	c, found, err := x.engine.Claim(context.WithoutCancel(x.claimCtx), row, 0)
	if err != nil {
		x.done(p, slotHeld)
		if x.claimCtx.Err() == nil {
			x.log.Error("claim of a tool task failed, trying again", "queue", row.Queues()[0], "error", err)
		}
		return execution.Sleep(x.claimCtx, execution.StoreRetry)
	}
	if !found {
		x.done(p, slotHeld)
		return false
	}
	r, w := x.addRun(p, c)
	if w != nil {
		w.claimed <- r
		return true
	}
	x.group.Go(func() { x.run(r) })
	return true
}

// begin registers a claim, unless claiming has stopped or no slot is free.
func (x *Executor) begin(p *pool) bool {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.draining || x.lapsed || !p.acquire() {
		return false
	}
	x.work.Begin()
	return true
}

// done unregisters a run or claim, and frees its slot of the pool.
func (x *Executor) done(p *pool, had slotState) {
	if had == slotHeld {
		x.mu.Lock()
		p.release()
		x.mu.Unlock()
	}
	x.work.Done()
}

// addRun makes the run of a claimed task. w is the call that waits for it, if any.
func (x *Executor) addRun(p *pool, c engine.Claimed) (r *run, w *waiter) {
	r = newRun(x, p, c)
	x.mu.Lock()
	x.runs[r.ID] = r
	p.used++
	cancelled := x.cancelledEarly[r.ID]
	delete(x.cancelledEarly, r.ID)
	if w = x.waiters[r.ID]; w != nil {
		delete(x.waiters, r.ID)
		r.line.Store(w.line.Load())
		context.AfterFunc(r.ctx, func() { w.stop(context.Cause(r.ctx)) })
	}
	lapsed := x.lapsed
	x.mu.Unlock()
	switch {
	case cancelled || c.Task.CancelRequested:
		r.stop(errCancelled)
	case lapsed:
		r.stop(errLapsed)
	}
	return r, w
}

// removeRun unregisters a run.
func (x *Executor) removeRun(r *run) {
	r.Tail.End()
	x.mu.Lock()
	if x.runs[r.ID] == r {
		delete(x.runs, r.ID)
	}
	had := r.slot
	if had == slotHeld {
		r.pool.used--
	}
	x.mu.Unlock()
	r.stop(nil)
	x.done(r.pool, had)
	r.pool.wake.Send()
}
