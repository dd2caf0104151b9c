package local

import (
	"context"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/internal/gateway"
)

// How a call that became a task gets its claim.

// claimFor claims until the task of a call has been claimed or cannot be. It ignores the number of slots: a
// call that has its tool's slot must never wait for a call that waits for that slot.
func (x *Executor) claimFor(w *waiter) {
	for x.awaited(w) && x.stateOf(w.id).State == signalbox.Pending &&
		x.claimOne(x.calls, signalbox.MaxAgentSlots) {
		continue
	}
}

// stateOf is the row of a task; the zero Task if it cannot be read.
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

// forget gives up the task of a call: whoever claims it makes the call again. It reports whether the task had
// not been claimed.
func (x *Executor) forget(w *waiter) bool {
	x.mu.Lock()
	defer x.mu.Unlock()
	was := x.waiters[w.id] == w
	delete(x.waiters, w.id)
	return was
}

// begun is called when the call has its slot. If the call is a task, it is made working, durably, before the
// tool runs.
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

// claim returns the run of the call's task. nil: it cannot be claimed here, and whoever claims it makes the
// call again.
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
	w.run = <-w.claimed // the goroutine that claimed it is about to send it
	return w.run
}

// ended records how the call ended.
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
	w.answer <- answer{res, err} // if it is a task, nobody receives it
	if !task {
		return
	}
	if r := w.claim(); r != nil {
		defer w.x.removeRun(r)
		r.conclude(res, err)
	}
}
