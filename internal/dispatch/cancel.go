package dispatch

import (
	"context"
	"net/http"
	"time"

	"github.com/signalbox-ai/signalbox"
)

// cancelTimeout bounds one request to cancel: an agent answers when nothing
// of the run lives, or says that it is still at it.
const cancelTimeout = 15 * time.Second

func (d *Dispatcher) runOf(t signalbox.Task) *run {
	d.mu.Lock()
	defer d.mu.Unlock()
	l := d.lanes[t.Agent]
	if l == nil {
		return nil
	}
	return l.runs[t.ID]
}

func (d *Dispatcher) tellCancelOf(t signalbox.Task) {
	if r := d.runOf(t); r != nil {
		r.setRow(t)
		d.tellCancel(r)
	}
}

// tellCancel tells the agent to stop a task, until it has heard it. The task
// ends by what the agent says of it, not by its answer here.
func (d *Dispatcher) tellCancel(r *run) {
	d.mu.Lock()
	begun := r.cancelling
	r.cancelling = true
	d.mu.Unlock()
	if begun {
		return
	}
	d.group.Go(func() { d.keepTelling(r) })
}

func (d *Dispatcher) keepTelling(r *run) {
	for delay := 100 * time.Millisecond; d.runOf(r.row()) == r; delay = min(2*delay, 2*time.Second) {
		if d.tellOnce(r) {
			return
		}
		if !sleep(d.ctx, delay) {
			return
		}
	}
}

// tellOnce reports whether the agent has heard it.
func (d *Dispatcher) tellOnce(r *run) bool {
	t := r.row()
	id := t.TaskID
	if id == "" {
		id = t.ID
	}
	ctx, cancel := context.WithTimeout(d.ctx, cancelTimeout)
	defer cancel()
	answer, err := r.conn().cancel(ctx, id)
	switch statusOf(err) {
	case http.StatusNotFound, http.StatusConflict: // it has ended, or is not known: following finds out
		return true
	}
	if err != nil {
		d.log.Warn("agent not reached to cancel", "queue_id", t.ID, "agent", r.lane.name, "error", err)
		return false
	}
	d.log.Info("", "queue", "cancel_told", "queue_id", t.ID, "agent", r.lane.name, "agent_state", answer.State)
	return true
}

// void ends the following of a task that was taken away, and tells its agent
// to stop it: what it may still say is stale.
func (d *Dispatcher) void(t signalbox.Task, tell bool) {
	r := d.runOf(t)
	if r == nil {
		return
	}
	r.stop()
	if tell {
		d.group.Go(func() { d.tellOnce(r) })
	}
}
