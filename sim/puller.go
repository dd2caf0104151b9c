package sim

import (
	"context"
	"fmt"
	"time"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/api"
)

// An agent that pulls: it asks any director for its tasks, and reports how they
// fare. What it runs, and what it refuses, is as with the other agents.

const (
	instance  = "p-1"
	claimFor  = 2 * time.Second // how long a claim waits
	answerFor = 5 * time.Second // and how long its agent, at most
	askAgain  = 300 * time.Millisecond
)

// home asks for tasks until the history is over.
func (a *agent) home() {
	w := a.w
	defer w.scheduler.hand()
	w.scheduler.turn(a.name, "begins", w.isOver)
	for !w.isOver() {
		life := a.lives
		c := api.PullClaim{Instance: instance, Slots: a.slots, IsolatedSlots: a.isolated, Runs: a.inHand()}
		for _, f := range a.fences {
			c.HighestFence = max(c.HighestFence, f)
		}
		answer, err := ask(a, a.name, "claim", func(ctx context.Context, d *director) (api.PullAnswer, error) {
			a.parked.Add(1)
			defer a.parked.Add(-1)
			return d.lanes.Claim(ctx, a.name, c, claimFor)
		})
		switch {
		case w.isOver():
			return
		case err == nil && a.answers() && a.lives == life:
			a.take(&answer)
		default:
			w.sleep(askAgain)
			w.scheduler.turn(a.name, "tries again", w.isOver)
		}
	}
}

// answers reports whether its process is there and runs. The next one begins when
// the last one has said that it stops.
func (a *agent) answers() bool { return !a.down && !a.silent && a.leaving.Load() == 0 }

// inHand lists the runs whose end it has not reported yet.
func (a *agent) inHand() (runs []api.PullRun) {
	a.look()
	for _, e := range a.runs {
		if !e.forgotten && !e.reported {
			ran := a.w.now().Sub(e.begun).Milliseconds()
			runs = append(runs, api.PullRun{QueueID: e.QueueID, Fence: e.Fence, Slot: e.Slot, Isolated: e.Isolated, Ended: !e.live(), RanMS: ran})
		}
	}
	return runs
}

// beats is a heartbeat of it: it has no slot to claim for, or has stopped.
func (a *agent) beats(ctx context.Context, d *director) {
	if d.isDead() || a.silent {
		return
	}
	b := api.Heartbeat{State: "working", Instance: instance, Runs: a.inHand()}
	if a.down {
		b.State = "stopping"
		a.leaving.Add(1)
		defer a.leaving.Add(-1)
	}
	if stop, _, err := d.lanes.Heartbeat(ctx, a.name, b); err == nil && a.answers() && !d.isDead() {
		a.take(&api.PullAnswer{Stop: stop})
	}
}

// take does what a director says.
func (a *agent) take(answer *api.PullAnswer) {
	for i := range answer.Stop {
		a.halt(&answer.Stop[i])
	}
	for _, q := range answer.Ask {
		if e := a.find(q.QueueID); e != nil && e.Fence == q.Fence {
			a.follow(e) // from the beginning
			continue
		}
		a.tell(q.QueueID, q.Fence, "unknown", api.PullReport{Unknown: true})
	}
	if answer.Task == nil {
		return
	}
	a.w.fault("task pulled")
	switch said := a.offer(&request{task: *answer.Task}); no := said.body.(type) {
	case api.AgentRefusal:
		refused := api.PullRefused{Status: said.status, Error: no.Error, Message: no.Message, HighestFence: no.HighestFence}
		a.tell(answer.Task.QueueID, answer.Task.Fence, "refused", api.PullReport{Refused: &refused})
	default:
		a.follow(a.find(answer.Task.QueueID))
	}
}

func (a *agent) halt(s *api.PullStop) {
	e := a.find(s.QueueID)
	switch {
	case e == nil || e.Fence != s.Fence || !e.live():
	case s.Void:
		a.end(e, "failed", &api.AgentError{Type: "stale_fence", Message: "the task was taken away"})
	default:
		a.cancel(e)
	}
}

// tell reports once, and does not look what becomes of it: it is asked again.
func (a *agent) tell(id string, fence int64, what string, rep api.PullReport) {
	name := fmt.Sprintf("%s tells %d of %s", a.name, a.w.steps, id)
	go func() {
		defer a.w.scheduler.hand()
		a.w.scheduler.turn(name, what, a.w.isOver)
		_, _ = a.report(name, id, fence, what, rep)
	}()
}

// follow reports how a run fares until its end is stored, or nobody waits for it.
func (a *agent) follow(e *execution) {
	e.reported = false
	if e.followed {
		return
	}
	e.followed = true
	w, name := a.w, fmt.Sprintf("%s follows %s", a.name, e.taskID)
	go func() {
		defer w.scheduler.hand()
		w.scheduler.turn(name, "accepted", w.isOver)
		accepted := api.PullReport{Accepted: &api.PullAccepted{TaskID: e.taskID, SessionID: e.SessionID}}
		if a.until(name, e, "accepted", func() api.PullReport { return accepted }) {
			a.awaitEnd(name, e)
			a.until(name, e, "finished", func() api.PullReport {
				state, text := a.state(e), a.output(e)
				return api.PullReport{Finished: &state, Output: &api.PullOutput{Text: text, Next: int64(len(text))}}
			})
		}
		e.reported, e.followed = true, false
	}()
}

// until reports something until it is taken. It returns false where there is
// nothing more to report.
func (a *agent) until(name string, e *execution, what string, rep func() api.PullReport) bool {
	for !a.w.isOver() && !e.forgotten {
		said, err := a.report(name, e.QueueID, e.Fence, what, rep())
		switch code := signalbox.CodeOf(err); {
		case !a.answers():
		case err == nil && !said.Again:
			if said.Stop != nil {
				a.halt(said.Stop)
			}
			return true
		case code == signalbox.CodeStaleFence, code == signalbox.CodeNotFound:
			a.halt(&api.PullStop{QueueID: e.QueueID, Fence: e.Fence, Void: true})
			return false
		}
		a.w.sleep(askAgain)
		a.w.scheduler.turn(name, "tries again", a.w.isOver)
	}
	return false
}

// awaitEnd waits until a run has ended.
func (a *agent) awaitEnd(name string, e *execution) {
	for a.look(); e.live() && !a.w.isOver(); a.look() {
		changed, timer := a.changed, time.NewTimer(max(e.until.Sub(a.w.now()), time.Millisecond))
		select {
		case <-changed:
		case <-timer.C:
		case <-a.w.ctx.Done():
		}
		timer.Stop()
		a.w.scheduler.turn(name, "looks", a.w.isOver)
	}
}

func (a *agent) report(name, id string, fence int64, what string, rep api.PullReport) (api.PullReported, error) {
	rep.Instance, rep.Fence = instance, fence
	return ask(a, name, fmt.Sprintf("%s run %s/%d", what, id, fence), func(ctx context.Context, d *director) (api.PullReported, error) {
		return d.lanes.Report(ctx, a.name, id, rep)
	})
}

// reply is what a director says to a request.
type reply[T any] struct {
	body T
	err  error
}

// ask brings a request to one of the directors, and its answer back, or not.
func ask[T any](a *agent, name, what string, f func(context.Context, *director) (T, error)) (none T, err error) {
	w := a.w
	w.scheduler.turn(name, "send "+what, w.isOver)
	alive := w.alive()
	if w.isOver() || len(alive) == 0 || !a.answers() {
		return none, errReset
	}
	d, how := alive[w.rng.IntN(len(alive))], w.fateOf(a)
	w.note("net", name, what, d.name()+fateNames[how])
	ctx, cancel := context.WithTimeout(w.ctx, answerFor)
	defer cancel()
	answers := make(chan reply[T], 2)
	serve := func(ctx context.Context, after time.Duration) {
		n := fmt.Sprintf("%s serves %d.%d %s", d.name(), w.steps, after, what)
		go func() {
			defer w.scheduler.hand()
			w.sleep(after)
			w.scheduler.turn(n, "serve", d.isDead)
			if d.isDead() {
				return
			}
			body, err := f(ctx, d)
			if d.isDead() { // and what it makes of it is not looked at
				err = errReset
			}
			answers <- reply[T]{body, err}
		}()
	}
	switch how {
	case refused, reset, failing, slow:
		return none, errReset
	case lost:
	case late, twice:
		serve(w.ctx, w.between(answerFor, 2*answerFor))
	}
	if how != lost && how != late {
		serve(ctx, 0)
	}
	return hear(ctx, w, name, answers, how == arrives || how == twice)
}

// hear waits for an answer, which may get lost on its way.
func hear[T any](ctx context.Context, w *world, name string, answers <-chan reply[T], comes bool) (none T, err error) {
	var got reply[T]
	heard := false
	select {
	case got = <-answers:
		heard = true
	case <-ctx.Done():
	}
	w.scheduler.turn(name, "hear", w.isOver)
	if !heard {
		select {
		case got = <-answers:
			heard = true
		default:
		}
	}
	if !heard || !comes {
		return none, errReset
	}
	return got.body, got.err
}
