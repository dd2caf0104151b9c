package sim

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/internal/store"
)

// The end of a history: all faults stop, and every task must end.

// settle ends all faults, and waits until every task has ended.
func (w *world) settle() {
	if len(w.wrong) > 0 {
		return
	}
	w.note("settle")
	w.faultsEnabled, w.skew, w.delayed = false, w.ahead, nil // keep the skew: timers were set by the skewed clock
	w.allowBackstop()
	for _, a := range w.agents {
		a.down, a.silent, a.claimsIdle = false, false, false
		for _, e := range a.runs {
			e.until = minTime(e.until, w.now().Add(time.Second)) // the order of ends no longer matters
		}
		a.change()
	}
	over := time.Now().Add(settleWithin)
	for resumed := false; len(w.wrong) == 0; {
		w.resumeIfDue()
		w.restartAll()
		if all := len(w.alive()) == len(w.directors); all && !resumed && w.users == 0 { // after the last pause
			resumed = true
			for _, queue := range []string{"", signalbox.QueueWork, "agent:a", "agent:c", "pool:red"} {
				w.onDirector("resume "+queue, func(ctx context.Context, d *director) { _ = d.engine.Resume(ctx, queue, "tester") })
			}
		}
		if w.idle() {
			why := w.unsettled()
			if why == "" && resumed {
				break
			}
			if time.Now().After(over) {
				w.fail("%s after %s without faults: %s", why, settleWithin, w.describeOpen())
				return
			}
			w.resubmit()
			w.reassignAgents()
			w.settleLogins()
		}
		w.step()
	}
	w.checkEnd()
}

// restartAll restarts the dead directors.
func (w *world) restartAll() {
	for _, d := range w.directors {
		if d.isDead() {
			w.startDirector(d.n)
		}
	}
}

// reassignAgents gives agents without a live holder to another director.
func (w *world) reassignAgents() {
	if w.town == nil || w.users > 0 {
		return
	}
	for _, a := range w.agents {
		if d := w.directors[w.holder[a.name]]; !d.holds(a.name) {
			w.onDirector("adopt", func(_ context.Context, d *director) { w.moveAgent(d) })
			return
		}
	}
}

// describeOpen describes what never ended.
func (w *world) describeOpen() (text string) {
	for _, id := range w.tasks {
		if t, err := w.task(id); err == nil && !t.State.Terminal() {
			text += fmt.Sprintf("%s is %s at %q in %s (ready %v); ", id, t.State, t.Agent, t.Queue, t.Ready)
		}
	}
	slots, _ := w.store.Slots(context.Background())
	return text + fmt.Sprintf("slots %+v", slots)
}

// checkEnd checks the end of a history: every acknowledged task exists and has ended (1, 12),
// once (5), an idempotency key made one task (2), and no slot is held.
func (w *world) checkEnd() {
	ctx := context.Background()
	w.book.changed = true
	w.check()
	byKey := map[string]string{}
	page, err := w.store.History(ctx, store.HistoryQuery{Limit: 1000})
	if err != nil {
		w.fail("the history cannot be read: %v", err)
	}
	for i := range page.Tasks {
		t := &page.Tasks[i]
		if other := byKey[t.IdempotencyKey]; other != "" && t.IdempotencyKey != "" {
			w.fail("the key %s made two tasks, %s and %s", t.IdempotencyKey, other, t.ID)
		}
		byKey[t.IdempotencyKey] = t.ID
	}
	for _, id := range w.tasks {
		if t, err := w.task(id); err != nil {
			w.fail("task %s was acknowledged, and: %v", id, err)
		} else if w.book.ended[id] == "" || !t.State.Terminal() {
			w.fail("task %s was acknowledged, and is %s (%s) at the end", id, t.State, t.Message)
		}
	}
	w.note("reckoned", strings.Join(w.tasks, " "))
}

// unsettled describes what has not ended yet; "" if nothing.
func (w *world) unsettled() string {
	ctx := context.Background()
	counts, err := w.store.Counts(ctx)
	slots, err2 := w.store.Slots(ctx)
	switch {
	case err != nil || err2 != nil:
		return "the store cannot be read"
	case counts.Pending > 0:
		return "tasks wait"
	case len(counts.InFlight) > 0:
		return "tasks are in flight"
	case len(slots) > 0:
		return "slots are held"
	case len(w.unanswered) > 0 || w.users > 0:
		return "submitters wait for an answer"
	}
	for _, d := range w.directors {
		for _, a := range d.d.Agents() {
			idle := a.Closed != nil && a.Closed.Until.IsZero() // retried with the next task, but there is none
			if !a.Up || a.Held && !idle || a.InUse > 0 {
				return "director " + d.name() + " finds agent " + a.Name + " down, held or at work: " + a.Message
			}
		}
		for _, a := range d.lanes.Agents() {
			if a.InUse > 0 || a.IsolatedInUse > 0 {
				return "director " + d.name() + " finds agent " + a.Name + " at work"
			}
		}
	}
	return ""
}

// settleWithin bounds the time until everything has ended.
const settleWithin = 20 * time.Minute
