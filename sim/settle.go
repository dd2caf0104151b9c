package sim

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/internal/store"
)

// The end of a history: all faults stop, and everything must come to its end.

// settle ends all faults, and waits until everything has come to its end.
func (w *world) settle() {
	if len(w.wrong) > 0 {
		return
	}
	w.note("settle")
	w.faulty, w.skew, w.mail = false, w.ahead, nil // what waits for its time was told to by a clock that was ahead
	for _, a := range w.agents {
		a.down, a.silent, a.liar = false, false, false
		for _, e := range a.runs {
			e.until = minTime(e.until, w.now().Add(time.Second)) // what ends when does not matter any more
		}
		a.change()
	}
	over := time.Now().Add(settleWithin)
	for resumed := false; len(w.wrong) == 0; {
		w.goOnInTime()
		w.revive()
		if all := len(w.alive()) == len(w.directors); all && !resumed && w.users == 0 { // after the last one who pauses
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
				w.fail("%s after %s without faults: %s", why, settleWithin, w.whatIsLeft())
				return
			}
			w.again()
			w.adopt()
		}
		w.step()
	}
	w.reckon()
}

// revive starts what is dead.
func (w *world) revive() {
	for _, d := range w.directors {
		if d.isDead() {
			w.launch(d.n)
		}
	}
}

// adopt gives agents that nobody alive holds to somebody, as directors do that
// look after each other.
func (w *world) adopt() {
	if w.town == nil || w.users > 0 {
		return
	}
	for _, a := range w.agents {
		if d := w.directors[w.holder[a.name]]; !d.holds(a.name) {
			w.onDirector("adopt", func(_ context.Context, d *director) { w.handOver(d) })
			return
		}
	}
}

// whatIsLeft describes what never ended.
func (w *world) whatIsLeft() (text string) {
	for _, id := range w.tasks {
		if t, err := w.task(id); err == nil && !t.State.Terminal() {
			text += fmt.Sprintf("%s is %s at %q in %s (ready %v); ", id, t.State, t.Agent, t.Queue, t.Ready)
		}
	}
	slots, _ := w.store.Slots(context.Background())
	return text + fmt.Sprintf("slots %+v", slots)
}

// reckon looks at the end of a history: every acknowledged task is there and has
// ended (1, 12), once (5), a key made one task (2), and no slot is held.
func (w *world) reckon() {
	ctx := context.Background()
	w.book.dirty = true
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

// unsettled says what is not yet at rest; "" if all is.
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
	case len(w.open) > 0 || w.users > 0:
		return "submitters wait for an answer"
	}
	for _, d := range w.directors {
		for _, a := range d.d.Agents() {
			idle := a.Closed != nil && a.Closed.RetryAt.IsZero() // it is tried with the next task, and there is none
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

// settleWithin bounds how long that takes, whatever was done before.
const settleWithin = 20 * time.Minute
