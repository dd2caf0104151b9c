package push

import (
	"net/http"
	"slices"
	"time"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/internal/execution"
)

// cancelTimeout bounds the agent's answer to a cancel: it answers when no process of the
// run is left, or that some still are.
const cancelTimeout = 10 * time.Second

// runOf returns the run of an execution.
func (d *Dispatcher) runOf(t signalbox.Task) *run {
	d.Mu.Lock()
	defer d.Mu.Unlock()
	if l := d.Lanes[t.Agent]; l != nil {
		if r := l.Runs[t.ID]; r != nil && r.Fence == t.Fence {
			return r
		}
	}
	return nil
}

func (d *Dispatcher) sendCancelFor(t signalbox.Task) {
	if r := d.runOf(t); r != nil {
		r.setRow(t)
		d.sendCancel(r)
	}
}

// sendCancel tells the agent to stop a task, with retries until it has answered or the run
// is over. The task ends by the agent's report on it, not by this answer.
func (d *Dispatcher) sendCancel(r *run) {
	d.Mu.Lock()
	defer d.Mu.Unlock()
	if r.cancelling {
		return
	}
	r.cancelling = true
	d.goInTerm(r.lane, r.term, func() {
		r.turn("tell")
		for delay := firstDelay; d.isFollowed(r); delay = min(2*delay, maxDelay) {
			if d.sendCancelOnce(r) {
				r.pollNow.Send()
				return
			}
			slept := execution.Sleep(r.term.ctx, delay)
			r.turn("tell")
			if !slept {
				return
			}
		}
	})
}

// isFollowed reports whether a run is still registered.
func (d *Dispatcher) isFollowed(r *run) bool {
	d.Mu.Lock()
	defer d.Mu.Unlock()
	return r.lane.Runs[r.ID] == r
}

// sendCancelOnce reports whether the agent got the cancel.
func (d *Dispatcher) sendCancelOnce(r *run) bool {
	w := r.endpoint()
	answer, err := w.conn.cancel(r.term.ctx, w.id)
	switch statusOf(err) {
	case http.StatusNotFound, http.StatusConflict: // ended or unknown: following finds out
		return true
	}
	if err != nil {
		if r.term.ctx.Err() == nil {
			d.Log.Warn("agent not reached to cancel", "queue_id", r.ID, "agent", r.lane.Name, "error", err)
		}
		return false
	}
	d.Log.Info("", "queue", "cancel_told", "queue_id", r.ID, "agent", r.lane.Name, "agent_state", answer.State)
	return true
}

// released handles that slots of an agent were taken away. Later reports of the execution
// are stale; its agent is told to stop it.
func (d *Dispatcher) released(t signalbox.Task) {
	d.Mu.Lock()
	defer d.Mu.Unlock()
	l := d.Lanes[t.Agent]
	if l == nil || l.term == nil {
		return // the director that dispatches to it handles it
	}
	defer func() {
		l.Bypass.Check()
		d.Update(l)
		l.Wake.Send()
	}()
	if t.ID == "" && t.Fence == 0 { // no slot was held: someone wants the agent to be offered tasks all the same
		l.offers.force()
		return
	}
	l.withheld = slices.DeleteFunc(l.withheld, func(w withheld) bool { return w.Fence == t.Fence })
	r := l.Runs[t.ID]
	if r == nil || r.Fence != t.Fence {
		return
	}
	d.remove(r)
	if !l.Row.Fencing && !r.Isolated {
		// It would answer busy, and the next task would lose its place.
		l.hold("asked to stop " + t.ID + ", and has not said yet that it is free")
		l.probing.Send()
	}
	if r.agentTask == "" {
		return // the offer is in flight: its answer stops the agent
	}
	d.trackLocked(r)
}
