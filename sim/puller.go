package sim

import (
	"context"
	"fmt"
	"time"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/api"
)

// A pull agent: it claims tasks from any director, and reports on them. Its runs and refusals are those of
// other agents.

const (
	instance  = "p-1"
	claimFor  = 2 * time.Second // long poll time of a claim
	answerFor = 5 * time.Second // how long its agent waits at most
	askAgain  = 300 * time.Millisecond
)

// pullLoop claims tasks until the history ends.
func (a *agent) pullLoop() {
	w := a.w
	defer w.scheduler.publish()
	w.scheduler.turn(a.name, "begins", w.isOver)
	for !w.isOver() {
		life := a.incarnation
		c := api.PullClaim{Instance: instance, Slots: a.slots, IsolatedSlots: a.isolated, Runs: a.unreported(), Account: a.account()}
		for _, f := range a.fences {
			c.HighestFence = max(c.HighestFence, f)
		}
		answer, err := ask(a, a.name, "claim", func(ctx context.Context, d *director) (api.PullAnswer, error) {
			a.heldClaims.Add(1)
			defer a.heldClaims.Add(-1)
			return d.lanes.Claim(ctx, a.name, c, claimFor)
		})
		switch {
		case w.isOver():
			return
		case err == nil && a.processUp() && a.incarnation == life:
			a.handleAnswer(&answer)
		default:
			w.sleep(askAgain)
			w.scheduler.turn(a.name, "tries again", w.isOver)
		}
	}
}

// processUp reports whether its process runs. The next process starts when the last one has announced its
// stop.
func (a *agent) processUp() bool { return !a.down && !a.silent && a.goodbyes.Load() == 0 }

// unreported lists runs whose end is not reported yet.
func (a *agent) unreported() (runs []api.PullRun) {
	a.endDueRuns()
	for _, e := range a.runs {
		if !e.forgotten && !e.reported {
			ran := a.w.now().Sub(e.begun).Milliseconds()
			runs = append(runs, api.PullRun{QueueID: e.QueueID, Fence: e.Fence, Slot: e.Slot, Isolated: e.Isolated, Ended: !e.live(), RanMS: ran})
		}
	}
	return runs
}

// heartbeat sends a heartbeat without a claim: no free slot, or stopped.
func (a *agent) heartbeat(ctx context.Context, d *director) {
	if d.isDead() || a.silent {
		return
	}
	b := api.Heartbeat{State: "working", Instance: instance, Runs: a.unreported()}
	if a.down {
		b.State = "stopping"
		a.goodbyes.Add(1)
		defer a.goodbyes.Add(-1)
	}
	if stop, _, err := d.lanes.Heartbeat(ctx, a.name, b); err == nil && a.processUp() && !d.isDead() {
		a.handleAnswer(&api.PullAnswer{Stop: stop})
	}
}

// handleAnswer carries out a director's answer.
func (a *agent) handleAnswer(answer *api.PullAnswer) {
	for i := range answer.Stop {
		a.stop(&answer.Stop[i])
	}
	for _, q := range answer.Ask {
		if e := a.find(q.QueueID); e != nil && e.Fence == q.Fence {
			a.follow(e) // from the start
			continue
		}
		a.reportOnce(q.QueueID, q.Fence, "unknown", api.PullReport{Unknown: true})
	}
	if answer.Task == nil {
		return
	}
	a.w.fault("task pulled")
	switch said := a.offer(&request{task: *answer.Task}); no := said.body.(type) {
	case api.AgentRefusal:
		refused := api.PullRefused{Status: said.status, Error: no.Error, Message: no.Message, HighestFence: no.HighestFence}
		a.reportOnce(answer.Task.QueueID, answer.Task.Fence, "refused", api.PullReport{Refused: &refused})
	default:
		a.follow(a.find(answer.Task.QueueID))
	}
}

func (a *agent) stop(s *api.PullStop) {
	e := a.find(s.QueueID)
	switch {
	case e == nil || e.Fence != s.Fence || !e.live():
	case s.Void:
		a.end(e, "failed", &api.AgentError{Type: "stale_fence", Message: "the task was taken away"})
	default:
		a.cancel(e)
	}
}

// reportOnce sends a report without retry: the director asks again.
func (a *agent) reportOnce(id string, fence int64, what string, rep api.PullReport) {
	name := fmt.Sprintf("%s tells %d of %s", a.name, a.w.steps, id)
	go func() {
		defer a.w.scheduler.publish()
		a.w.scheduler.turn(name, what, a.w.isOver)
		_, _ = a.report(name, id, fence, what, rep)
	}()
}

// follow reports a run until its end is stored or no longer wanted.
func (a *agent) follow(e *execution) {
	e.reported = false
	if e.followed {
		return
	}
	e.followed = true
	w, name := a.w, fmt.Sprintf("%s follows %s", a.name, e.taskID)
	go func() {
		defer w.scheduler.publish()
		w.scheduler.turn(name, "accepted", w.isOver)
		accepted := api.PullReport{Accepted: &api.PullAccepted{TaskID: e.taskID, SessionID: e.SessionID}}
		if a.reportUntilTaken(name, e, "accepted", func() api.PullReport { return accepted }) {
			a.awaitEnd(name, e)
			a.reportUntilTaken(name, e, "finished", func() api.PullReport {
				state, text := a.state(e), a.output(e)
				return api.PullReport{Finished: &state, Output: &api.PullOutput{Text: text, Next: int64(len(text))}}
			})
		}
		e.reported, e.followed = true, false
	}()
}

// reportUntilTaken repeats a report until it is acknowledged. It returns false if nothing more
// is to be reported.
func (a *agent) reportUntilTaken(name string, e *execution, what string, rep func() api.PullReport) bool {
	for !a.w.isOver() && !e.forgotten {
		said, err := a.report(name, e.QueueID, e.Fence, what, rep())
		switch code := signalbox.CodeOf(err); {
		case !a.processUp():
		case err == nil && !said.Again:
			if said.Stop != nil {
				a.stop(said.Stop)
			}
			return true
		case code == signalbox.CodeStaleFence, code == signalbox.CodeNotFound:
			a.stop(&api.PullStop{QueueID: e.QueueID, Fence: e.Fence, Void: true})
			return false
		}
		a.w.sleep(askAgain)
		a.w.scheduler.turn(name, "tries again", a.w.isOver)
	}
	return false
}

// awaitEnd waits until a run has ended.
func (a *agent) awaitEnd(name string, e *execution) {
	for a.endDueRuns(); e.live() && !a.w.isOver(); a.endDueRuns() {
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

// reply is a director's answer.
type reply[T any] struct {
	body T
	err  error
}

// ask sends a request to a director, and returns its answer unless it is lost.
func ask[T any](a *agent, name, what string, f func(context.Context, *director) (T, error)) (none T, err error) {
	w := a.w
	w.scheduler.turn(name, "send "+what, w.isOver)
	alive := w.alive()
	if w.isOver() || len(alive) == 0 || !a.processUp() {
		return none, errReset
	}
	d, how := alive[w.rng.IntN(len(alive))], w.chooseFault(a)
	w.note("net", name, what, d.name()+faultNames[how])
	ctx, cancel := context.WithTimeout(w.ctx, answerFor)
	defer cancel()
	answers := make(chan reply[T], 2)
	serve := func(ctx context.Context, after time.Duration) {
		n := fmt.Sprintf("%s serves %d.%d %s", d.name(), w.steps, after, what)
		go func() {
			defer w.scheduler.publish()
			w.sleep(after)
			w.scheduler.turn(n, "serve", d.isDead)
			if d.isDead() {
				return
			}
			body, err := f(ctx, d)
			if d.isDead() { // its answer does not count
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

// hear waits for an answer, which may be lost.
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
