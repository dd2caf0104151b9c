package push

import (
	"net/http"
	"slices"
	"time"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/internal/execution"
)

// cancelTimeout is how long an agent may take to answer a request to cancel: it does
// when nothing of the run lives, or says that it is still at it.
const cancelTimeout = 10 * time.Second

// runOf returns the run of exactly this execution.
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

// tellCancel tells the agent to stop a task, until it has heard it or the run is
// over. The task ends by what the agent says of it, not by its answer here.
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

// runs reports whether a run is on the books still.
func (d *Dispatcher) isFollowed(r *run) bool {
	d.Mu.Lock()
	defer d.Mu.Unlock()
	return r.lane.Runs[r.ID] == r
}

// tellOnce reports whether the agent has heard it.
func (d *Dispatcher) sendCancelOnce(r *run) bool {
	w := r.endpoint()
	answer, err := w.conn.cancel(r.term.ctx, w.id)
	switch statusOf(err) {
	case http.StatusNotFound, http.StatusConflict: // it has ended, or is not known: following finds out
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

// released takes in that someone took slots of an agent away. What the
// execution may still say is stale; its agent is told to stop it.
func (d *Dispatcher) released(t signalbox.Task) {
	d.Mu.Lock()
	defer d.Mu.Unlock()
	l := d.Lanes[t.Agent]
	if l == nil || l.term == nil {
		return // the director that dispatches to it hears of it
	}
	defer func() {
		l.Bypass.Check()
		d.Update(l)
		l.Wake.Send()
	}()
	if t.ID == "" && t.Fence == 0 { // nothing held a slot: someone wants the agent to be offered tasks all the same
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
		return // the offer is under way: its answer finds out, and stops the agent then
	}
	d.trackLocked(r)
}
