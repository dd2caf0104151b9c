package director

import (
	"context"
	"fmt"
	"net/http"
	"sync"
	"time"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/internal/engine"
	"github.com/signalbox-ai/signalbox/internal/store"
)

// waitCall holds the answer to a call back until its task has ended, or the
// caller, its preference or the director's end says otherwise.
func (d *Director) waitCall(w http.ResponseWriter, r *http.Request, c *call, t signalbox.Task) error {
	leave := d.callers.join(t.ID)
	ctx, cancel := d.untilStopped(r.Context())
	defer cancel()
	now, err := d.hold(ctx, c, t.ID)
	last := leave()
	if r.Context().Err() != nil {
		d.callerGone(r, c, t.ID, last)
		return nil
	}
	if err != nil && ctx.Err() != nil { // the read that the director's end cut off
		now, err = d.engine.Read().Task(r.Context(), t.ID)
	}
	if err != nil {
		return err
	}
	if !now.State.Terminal() {
		return d.answerEarly(w, r, c, &now)
	}
	end, err := d.endOf(r.Context(), c, &now)
	if err != nil {
		return err
	}
	end.body.RequestID = w.Header().Get(requestIDHeader)
	end.answer(d, w)
	return nil
}

// hold waits for the end of a task, for as long as the call allows.
func (d *Director) hold(ctx context.Context, c *call, id string) (signalbox.Task, error) {
	over := time.Now().Add(c.prefer.patience())
	if c.startWithin > 0 {
		t, err := d.engine.Wait(ctx, id, min(c.startWithin, c.prefer.patience()), begun)
		if err != nil || !begun(t) {
			return t, err
		}
	}
	return d.engine.Wait(ctx, id, time.Until(over), engine.Ended)
}

// begun reports whether a task has left the line for good: it runs, or has
// ended.
func begun(t signalbox.Task) bool {
	return t.State != signalbox.Pending && t.State != signalbox.Dispatching
}

// answerEarly is the 202 of a call whose task goes on without it.
func (d *Director) answerEarly(w http.ResponseWriter, r *http.Request, c *call, t *signalbox.Task) error {
	pos, err := d.placeOf(r.Context(), t)
	if err != nil {
		return err
	}
	why := "it goes on"
	applied := c.prefer.applied()
	switch {
	case d.life.Err() != nil:
		why, applied = "the director is stopping; the task goes on", ""
	case c.startWithin > 0 && !begun(*t):
		why = fmt.Sprintf("it has not started within %s and waits on in the backlog", c.startWithin)
	}
	if applied != "" {
		w.Header().Set("Preference-Applied", applied)
	}
	d.answer(w, http.StatusAccepted, acceptedView(c, t, pos, d.engine.ETA(r.Context(), t, pos), why+": ask for its end at "+taskURL(t.ID)+"?wait=5m"))
	return nil
}

// placeOf is the place in line of a task, zero where it does not wait.
func (d *Director) placeOf(ctx context.Context, t *signalbox.Task) (store.Position, error) {
	if t.State != signalbox.Pending {
		return store.Position{}, nil
	}
	return d.engine.Read().Position(ctx, t.ID)
}

// goneCaller is who cancels a task whose caller did not wait for its end.
const goneCaller = "its caller, who went away"

// callerGone notes that a caller has gone away before its answer, and cancels
// its task where it asked for that and nobody else waits for the same task.
func (d *Director) callerGone(r *http.Request, c *call, id string, last bool) {
	cancels := c.cancelIfGone && last
	d.log.Info("", c.name(), "caller_gone", "agent", c.agent, "execution", id, "cancels", cancels)
	if !cancels {
		return
	}
	_, err := d.engine.Cancel(context.WithoutCancel(r.Context()), id, goneCaller)
	if err != nil && signalbox.CodeOf(err) != signalbox.CodeAlreadyEnded {
		d.log.Error("task of a caller who went away not cancelled", "queue_id", id, "error", err)
	}
}

// callers counts who waits for which task: calls with the same idempotency
// key wait for the same one.
type callers struct {
	mu      sync.Mutex
	waiting map[string]int
}

// join counts a caller until it leaves, which says whether it was the last.
func (c *callers) join(id string) (leave func() (last bool)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.waiting == nil {
		c.waiting = map[string]int{}
	}
	c.waiting[id]++
	return func() bool {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.waiting[id]--
		if c.waiting[id] > 0 {
			return false
		}
		delete(c.waiting, id)
		return true
	}
}
