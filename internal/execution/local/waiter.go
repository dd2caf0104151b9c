package local

import (
	"context"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/internal/gateway"
)

// How a call that became a task comes by that task, and what becomes of it.

// claimFor claims until the task of a call has been claimed or cannot be. It
// takes no regard of how many slots there are: a call that has its tool's slot
// must never wait for one that waits for that.
func (x *Executor) claimFor(w *waiter) {
	for x.awaited(w) && x.stateOf(w.id).State == signalbox.Pending &&
		x.claimOne(x.calls, signalbox.MaxAgentSlots) {
		continue
	}
}

// stateOf is the row of a task; the zero Task where it cannot be read.
func (x *Executor) stateOf(id string) signalbox.Task {
	t, err := x.engine.Read().Task(context.Background(), id)
	if err != nil {
		x.log.Error("a tool task could not be read", "queue_id", id, "error", err)
		return signalbox.Task{}
	}
	return t
}

// awaited reports whether the task of a call has not been claimed yet.
func (x *Executor) awaited(w *waiter) bool {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.waiters[w.id] == w
}

// forget gives up on the task of a call: whoever claims it makes the call anew.
// It reports whether nobody has claimed it.
func (x *Executor) forget(w *waiter) bool {
	x.mu.Lock()
	defer x.mu.Unlock()
	was := x.waiters[w.id] == w
	delete(x.waiters, w.id)
	return was
}

// begun is told that the call has its slot. Of one that is a task that must be
// durable before it runs.
func (w *waiter) begun(c *gateway.Call) error {
	w.mu.Lock()
	if w.state == attached {
		w.state = running
		w.mu.Unlock()
		return nil
	}
	settled := w.settled
	w.mu.Unlock()
	if settled != nil {
		<-settled
		return w.begun(c)
	}
	r := w.claim()
	if r == nil {
		return errUnclaimed
	}
	t := r.row()
	c.Task, c.Mark, c.Log = r.ID, markOf(&t), r.appendLog
	return r.accept()
}

// claim returns the run of the call's task. nil: it cannot be had, and whoever
// can makes the call anew.
func (w *waiter) claim() *run {
	if w.run != nil || w.lost {
		return w.run
	}
	w.x.claimFor(w)
	t := w.x.stateOf(w.id)
	taken := t.State == signalbox.Dispatching && t.Agent == w.x.calls.row.Name
	if !taken && w.x.forget(w) {
		w.lost = true
		return nil
	}
	w.run = <-w.claimed // whoever claimed it is about to hand it over
	return w.run
}

// ended takes in how the call ended.
func (w *waiter) ended(res gateway.Result, err error) {
	w.mu.Lock()
	for w.state == becoming {
		settled := w.settled
		w.mu.Unlock()
		<-settled
		w.mu.Lock()
	}
	task := w.state == isTask
	w.mu.Unlock()
	w.answer <- answer{res, err} // of a task nobody takes it
	if !task {
		return
	}
	if r := w.claim(); r != nil {
		defer w.x.removeRun(r)
		r.conclude(res, err)
	}
}
