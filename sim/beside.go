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

// Nobody waits beside a free slot that they may use (9). A dispatcher has a
// backstop that looks each second, which hides a sign that was never given: a
// task has to be taken sooner than that.

// atOnce is how soon: a claim that the store could not make is made again after
// 200 ms. Where a sign was lost because the store could not be read, the
// backstop has to do, for so long.
const (
	atOnce   = 300 * time.Millisecond
	backstop = exec.DefaultTick + atOnce
)

// excuse lets those who wait wait for the backstop: the store failed just now.
func (w *world) excuse() { w.excused = time.Now().Add(backstop) }

// rest lets time go on where nobody can, and looks who waits meanwhile.
func (w *world) rest() {
	waits := w.beside()
	begun := time.Now()
	w.pass(w.between(time.Millisecond, 2*time.Second))
	took := time.Since(begun)
	before := w.waited
	w.waited = map[string]time.Duration{}
	if begun.Before(w.excused) {
		return
	}
	for id, agent := range waits {
		w.waited[id] = before[id] + took
		if w.waited[id] >= atOnce {
			t, _ := w.task(id)
			w.fail("task %s waits in %s for %s beside a free slot of agent %s", id, t.Queue, w.waited[id], agent)
		}
	}
}

// beside lists the tasks that wait though an agent has a slot for them, with
// that agent. Where several directors are, one hears late of what another did.
func (w *world) beside() map[string]string {
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
		paused[p.Queue] = true // until somebody looks whether its time is over, too
	}
	waits := map[string]string{}
	for _, a := range w.directors[0].offered() {
		for i := range waiting {
			if t := &waiting[i]; !paused[""] && !paused[t.Queue] && w.couldTake(&a, t, slots, paused) {
				waits[t.ID] = a.Name
			}
		}
	}
	return waits
}

// offered lists the agents that can be given a task at once: those that pull,
// where they ask for one. Under a ceiling over all agents those hear from the
// backstop alone that a slot is free which was withheld elsewhere.
func (d *director) offered() []engine.LiveAgent {
	list := d.d.Agents()
	if d.w.book.fleet > 0 {
		return list
	}
	for _, pulls := range d.lanes.Agents() {
		if slices.ContainsFunc(d.w.agents, func(a *agent) bool { return a.name == pulls.Name && a.parked.Load() > 0 }) {
			list = append(list, pulls)
		}
	}
	return list
}

// couldTake reports whether an agent has a slot for a task that waits.
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
	return !full && !a.Held && !paused[signalbox.AgentQueue(a.Name)] && slices.Contains(a.Queues(), t.Queue)
}
