package sim

import (
	"context"
	"slices"
	"time"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/internal/engine"
	exec "github.com/signalbox-ai/signalbox/internal/execution"
	"github.com/signalbox-ai/signalbox/internal/store"
)

// No task waits beside a free slot that it may use (9). The dispatcher's backstop, which runs every second,
// would hide a lost signal, so a task must be taken sooner than that.

// promptly: a claim that failed because of the store is retried after 200 ms. If a signal was lost because
// the store could not be read, only the backstop helps, after that time.
const (
	promptly = 300 * time.Millisecond
	backstop = exec.DefaultTick + promptly
)

// allowBackstop extends the allowed wait to the backstop after a store failure.
func (w *world) allowBackstop() { w.backstopUntil = time.Now().Add(backstop) }

// advanceIdle advances time while no actor can run, and checks for starvation.
func (w *world) advanceIdle() {
	waits := w.waitingBesideFreeSlot()
	begun := time.Now()
	w.advance(w.between(time.Millisecond, 2*time.Second))
	took := time.Since(begun)
	before := w.starved
	w.starved = map[string]time.Duration{}
	if begun.Before(w.backstopUntil) {
		return
	}
	for id, agent := range waits {
		w.starved[id] = before[id] + took
		if w.starved[id] >= promptly {
			t, _ := w.task(id)
			w.fail("task %s waits in %s for %s beside a free slot of agent %s", id, t.Queue, w.starved[id], agent)
		}
	}
}

// waitingBesideFreeSlot lists the tasks that wait although an agent has a free slot for them,
// with that agent. With several directors, changes of one are seen late by others.
func (w *world) waitingBesideFreeSlot() map[string]string {
	if len(w.directors) > 1 || len(w.alive()) == 0 {
		return nil
	}
	ctx := context.Background()
	waiting, err := w.store.Waiting(ctx, "", store.Cursor{}, 1000)
	if err != nil {
		w.fail("the store cannot be read: %v", err)
	}
	waiting = slices.DeleteFunc(waiting, func(t signalbox.Task) bool { return !t.Ready })
	if len(waiting) == 0 {
		return nil
	}
	slots, err1 := w.store.Slots(ctx)
	pauses, err2 := w.store.Pauses(ctx)
	if err1 != nil || err2 != nil {
		w.fail("the store cannot be read: %v, %v", err1, err2)
	}
	paused := map[string]bool{}
	for _, p := range pauses {
		paused[p.Queue] = true // until a director checks whether its time is over
	}
	waits := map[string]string{}
	for _, a := range w.directors[0].offerable() {
		for i := range waiting {
			if t := &waiting[i]; !paused[""] && !paused[t.Queue] && w.couldTake(&a, t, slots, paused) {
				waits[t.ID] = a.Name
			}
		}
	}
	return waits
}

// offerable lists the agents that can get a task at once: pull agents only while they claim. With a fleet
// limit, other agents learn only by the backstop that a withheld slot is free.
func (d *director) offerable() []engine.LiveAgent {
	list := d.d.Agents()
	if d.w.book.fleet > 0 {
		return list
	}
	for _, pulls := range d.lanes.Agents() {
		if slices.ContainsFunc(d.w.agents, func(a *agent) bool { return a.name == pulls.Name && a.heldClaims.Load() > 0 }) {
			list = append(list, pulls)
		}
	}
	return list
}

// couldTake reports whether an agent has a slot for a waiting task.
func (w *world) couldTake(a *engine.LiveAgent, t *signalbox.Task, slots []signalbox.Slot, paused map[string]bool) bool {
	if !a.Up {
		return false
	}
	used, isolated, all := 0, 0, 0
	for _, s := range slots {
		switch own := s.Agent == a.Name; {
		case own && signalbox.Isolated(s.Slot):
			isolated++
		case own:
			used++
		}
		if !signalbox.Isolated(s.Slot) {
			all++
		}
	}
	if name, bypass := signalbox.QueueBypass(t.Queue); bypass {
		return name == a.Name && isolated < a.IsolatedSlots && !a.BackedOff
	}
	full := used >= a.Slots || (w.book.fleet > 0 && all >= w.book.fleet)
	open := a.Account == "" || w.accountOpen(a.Account)
	return !full && open && !a.Held && !paused[signalbox.AgentQueue(a.Name)] && slices.Contains(a.Queues(), t.Queue)
}
