package sim

import (
	"context"
	"fmt"
	"time"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/internal/engine"
)

// randomEvent makes something happen that is not a director's decision.
func (w *world) randomEvent() {
	for _, d := range w.directors {
		if d.isDead() && (w.oneIn(3) || (w.town != nil && w.oneIn(2))) {
			w.note("launch", d.name())
			w.startDirector(d.n)
			return
		}
	}
	switch n := w.rng.IntN(34); {
	case n < 11:
		w.submitTask(submit{n: w.newTask()})
	case n < 13:
		w.resubmit()
	case n < 16:
		w.onTask("cancel", func(ctx context.Context, d *director, id string) error {
			_, err := d.engine.Cancel(ctx, id, "tester")
			return err
		})
	case n < 17:
		w.onTask("retry", func(ctx context.Context, d *director, id string) error {
			r, err := d.engine.Retry(ctx, id, engine.RetryEdit{})
			if err == nil && !d.isDead() {
				w.acknowledged(r, "")
			}
			return err
		})
	case n < 18:
		w.release()
	case n < 19:
		w.onAgent("clear", func(ctx context.Context, d *director, a *agent) { _, _ = d.engine.ClearLane(ctx, a.name, "tester") })
	case n < 21:
		w.pause()
	case n < 22:
		if w.oneIn(2) {
			w.jump()
		}
	case n < 23 && w.oneIn(3):
		w.fault("kill")
		d := w.directors[w.rng.IntN(len(w.directors))]
		w.note("kill", d.name())
		w.kill(d)
	case n < 24 && len(w.directors) > 1 && w.oneIn(2):
		w.pauseDirector()
	case n < 24 && len(w.directors) > 1:
		w.onDirector("hand over", func(_ context.Context, d *director) { w.moveAgent(d) })
	case n < 27:
		w.agentFault(w.agents[w.rng.IntN(len(w.agents))])
	case n < 29 && len(w.delayed) > 0:
		w.deliver()
	case n < 30:
		w.sendHeartbeat(w.agents[w.rng.IntN(len(w.agents))])
	case n < 32:
		w.providerEvent()
	default:
		w.advance(w.between(time.Millisecond, 10*time.Second))
	}
}

// newTask returns a random task.
func (w *world) newTask() engine.NewTask {
	n := engine.NewTask{Prompt: fmt.Sprintf("task %d", w.steps)}
	any := func() string { return w.agents[w.rng.IntN(len(w.agents))].name }
	switch w.rng.IntN(10) {
	case 0:
		n.Agent = any()
	case 1:
		n.Kind = "red"
	case 2, 3:
		n.Agent, n.Mode, n.NewSession = any(), signalbox.ModeChat, w.oneIn(3)
	case 4:
		n.Agent, n.Mode = any(), signalbox.ModeBypass
	case 5:
		n.SessionID, n.Session = fmt.Sprintf("talk-%d", w.rng.IntN(3)), signalbox.SessionPrefer
	case 6:
		n.Priority = w.rng.IntN(7) - 3
	}
	if n.Mode != signalbox.ModeBypass && w.oneIn(6) {
		n.NotBefore = w.wall().Add(w.between(0, 30*time.Second))
	}
	if w.oneIn(5) {
		n.WaitTimeout = w.between(time.Second, 20*time.Second).Truncate(time.Second)
	}
	if w.oneIn(3) {
		n.OnLost = signalbox.LostRequeue
	}
	if w.oneIn(8) {
		n.TimeoutSeconds = 1 + w.rng.IntN(10)
	}
	if w.oneIn(8) {
		n.Prompt += " fails"
	}
	if w.oneIn(2) {
		n.IdempotencyKey = fmt.Sprintf("key-%d", w.steps)
	}
	return n
}
