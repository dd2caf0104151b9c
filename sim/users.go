package sim

import (
	"context"
	"fmt"
	"time"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/internal/engine"
)

// Requests of users.

// submit is a submission until it is acknowledged.
type submit struct {
	n     engine.NewTask
	tries int
}

// onDirector calls a live director as a user.
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
	name := fmt.Sprintf("%s user %d", d.name(), w.steps) // if that director is paused, nobody is answered
	w.note(name, what)
	go func() {
		defer w.scheduler.publish()
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
	if w.oneIn(2) { // the newest ones are in flight
		id = w.tasks[len(w.tasks)-1-w.rng.IntN(min(4, len(w.tasks)))]
	}
	w.onDirector(what+" "+id, func(ctx context.Context, d *director) { _ = f(ctx, d, id) }) // it may have ended
}

// submitTask submits, and records the answer. If it is lost, the submitter retries with the
// same key.
func (w *world) submitTask(s submit) {
	w.asUser("submit "+s.n.Prompt, func(ctx context.Context, d *director, name string) {
		r, err := d.engine.Submit(ctx, s.n)
		dead := d.isDead()
		if !dead { // a dead director cannot answer
			if err == nil && w.oneIn(10) && w.faultsEnabled {
				w.fault("answer lost")
				err = errGone
			}
		}
		w.scheduler.turn(name, "submitted", w.isOver)
		switch {
		case !dead && err == nil:
			w.acknowledged(r, s.n.IdempotencyKey)
		case s.n.IdempotencyKey != "" && (dead || signalbox.CodeOf(err) == signalbox.CodeStoreFailed || signalbox.CodeOf(err) == signalbox.CodeUnavailable):
			w.unanswered = append(w.unanswered, submit{s.n, s.tries + 1})
		}
	})
}

// resubmit retries a submission whose answer was lost, or, needlessly, one that was answered.
func (w *world) resubmit() {
	if len(w.unanswered) == 0 || len(w.alive()) == 0 {
		return
	}
	i := w.rng.IntN(len(w.unanswered))
	s := w.unanswered[i]
	w.unanswered = append(w.unanswered[:i], w.unanswered[i+1:]...)
	w.submitTask(s)
}

// acknowledged records an acknowledged task (1, 2).
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
		a.overlapAllowed = true // a release by hand overrides the director
		_, _ = d.engine.ReleaseLane(ctx, a.name, "tester")
	})
}

func (w *world) pause() {
	queue := []string{"", signalbox.QueueWork, "agent:a", "agent:c", "pool:red"}[w.rng.IntN(5)]
	if w.oneIn(2) {
		w.onDirector("resume "+queue, func(ctx context.Context, d *director) { _ = d.engine.Resume(ctx, queue, "tester") })
		return
	}
	w.pauses++
	until := time.Time{}
	if w.oneIn(2) {
		until = w.wall().Add(w.between(time.Second, 20*time.Second))
	}
	w.onDirector("pause "+queue, func(ctx context.Context, d *director) { _ = d.engine.Pause(ctx, queue, "", "tester", until) })
}
