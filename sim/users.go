package sim

import (
	"context"
	"fmt"
	"time"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/internal/engine"
)

// Whoever asks a director for something.

// submit is what somebody asks for, until it is acknowledged.
type submit struct {
	n     engine.NewTask
	tries int
}

// onDirector lets somebody ask a director that lives.
func (w *world) onDirector(what string, f func(ctx context.Context, d *director)) {
	w.asUser(what, func(ctx context.Context, d *director, _ string) { f(ctx, d) })
}

func (w *world) asUser(what string, f func(ctx context.Context, d *director, name string)) {
	alive := w.alive()
	if len(alive) == 0 {
		return
	}
	d := alive[w.rng.IntN(len(alive))]
	w.users++
	name := fmt.Sprintf("%s user %d", d.name(), w.steps) // where that one stands still, nobody is answered
	w.note(name, what)
	go func() {
		defer w.scheduler.hand()
		w.scheduler.turn(name, what, d.isDead)
		f(context.Background(), d, name)
		w.scheduler.turn(name, "answered", w.isOver)
		w.users--
	}()
}

func (w *world) onAgent(what string, f func(context.Context, *director, *agent)) {
	a := w.agents[w.rng.IntN(len(w.agents))]
	w.onDirector(what+" "+a.name, func(ctx context.Context, d *director) { f(ctx, d, a) })
}

func (w *world) onTask(what string, f func(context.Context, *director, string) error) {
	if len(w.tasks) == 0 {
		return
	}
	id := w.tasks[w.rng.IntN(len(w.tasks))]
	if w.one(2) { // the newest ones are the ones under way
		id = w.tasks[len(w.tasks)-1-w.rng.IntN(min(4, len(w.tasks)))]
	}
	w.onDirector(what+" "+id, func(ctx context.Context, d *director) { _ = f(ctx, d, id) }) // it may have ended
}

// ask submits, and takes note of the answer. Where it is lost, the submitter
// comes back, with the same key.
func (w *world) ask(s submit) {
	w.asUser("submit "+s.n.Prompt, func(ctx context.Context, d *director, name string) {
		r, err := d.engine.Submit(ctx, s.n)
		dead := d.isDead()
		if !dead { // a dead one cannot answer; and what it makes of it is not looked at
			if err == nil && w.one(10) && w.faulty {
				w.fault("answer lost")
				err = errGone
			}
		}
		w.scheduler.turn(name, "submitted", w.isOver)
		switch {
		case !dead && err == nil:
			w.acknowledged(r, s.n.IdempotencyKey)
		case s.n.IdempotencyKey != "" && (dead || signalbox.CodeOf(err) == signalbox.CodeStoreFailed || signalbox.CodeOf(err) == signalbox.CodeUnavailable):
			w.open = append(w.open, submit{s.n, s.tries + 1})
		}
	})
}

// again is a submitter who comes back: for the answer that was lost, or, for no
// reason, for one that came.
func (w *world) again() {
	if len(w.open) == 0 || len(w.alive()) == 0 {
		return
	}
	i := w.rng.IntN(len(w.open))
	s := w.open[i]
	w.open = append(w.open[:i], w.open[i+1:]...)
	w.ask(s)
}

// acknowledged takes note of a task that somebody was told is stored (1, 2).
func (w *world) acknowledged(r engine.Receipt, key string) {
	id := r.Task.ID
	w.note("acknowledged", id)
	if _, err := w.task(id); err != nil {
		w.fail("task %s was acknowledged, and: %v", id, err)
	}
	if first, known := w.keys[key]; key != "" && known && first != id {
		w.fail("the key %s made %s, and then %s", key, first, id)
	}
	if key != "" {
		w.keys[key] = id
	}
	w.tasks = append(w.tasks, id)
}

func (w *world) release() {
	w.onAgent("release", func(ctx context.Context, d *director, a *agent) {
		if d.isDead() {
			return
		}
		a.told = true // whoever frees a slot by hand knows better than the director
		_, _ = d.engine.ReleaseLane(ctx, a.name, "tester")
	})
}

func (w *world) pause() {
	queue := []string{"", signalbox.QueueWork, "agent:a", "agent:c", "pool:red"}[w.rng.IntN(5)]
	if w.one(2) {
		w.onDirector("resume "+queue, func(ctx context.Context, d *director) { _ = d.engine.Resume(ctx, queue, "tester") })
		return
	}
	w.pauses++
	until := time.Time{}
	if w.one(2) {
		until = w.wall().Add(w.between(time.Second, 20*time.Second))
	}
	w.onDirector("pause "+queue, func(ctx context.Context, d *director) { _ = d.engine.Pause(ctx, queue, "", "tester", until) })
}
