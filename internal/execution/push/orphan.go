package push

import (
	"context"
	"net/http"
	"slices"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/api"
	"github.com/signalbox-ai/signalbox/internal/engine"
	"github.com/signalbox-ai/signalbox/internal/execution"
	"github.com/signalbox-ai/signalbox/internal/store"
)

// An orphan is an execution that was taken away, by a release or a loss, while its agent
// may still run it. It cannot change its task. Its agent is told to stop it, and its final
// report is kept aside.

// maxOrphans bounds the orphans of one agent, since each keeps the tail of its log.
const maxOrphans = 64

// track follows an orphan on a goroutine of its own.
func (d *Dispatcher) track(r *run) {
	d.Mu.Lock()
	defer d.Mu.Unlock()
	d.trackLocked(r)
}

// trackLocked is track with Mu held.
func (d *Dispatcher) trackLocked(r *run) {
	l := r.lane
	switch {
	case r.tracked:
		return
	case l.orphans >= maxOrphans:
		d.Log.Warn("void execution not followed: its agent has too many", "queue_id", r.ID, "agent", l.Name)
		return
	}
	begun := d.goInTerm(l, r.term, func() {
		r.stop()
		<-r.done // its own goroutine may still be writing its log
		r.turn("run")
		r.awaitExit(r.term.ctx)
		d.Mu.Lock()
		l.orphans--
		d.Mu.Unlock()
		l.probing.Send() // the agent may be free
	})
	if begun {
		r.tracked = true
		l.orphans++
	}
}

// adoptOrphans adopts executions that were taken away within the last slot lease: the
// director that did so may have ended before it told their agents. Executions with a final
// report are skipped.
func (d *Dispatcher) adoptOrphans(ctx context.Context, taken map[string]*term) error {
	since := d.Engine.Now().Add(-d.Engine.Options().ExecutionTTL)
	for _, reason := range []signalbox.Reason{signalbox.ReasonReleased, signalbox.ReasonLost} {
		page, err := d.Engine.Read().History(ctx, store.HistoryQuery{Reason: reason, Since: since, Limit: 100})
		if err != nil {
			return err
		}
		for _, t := range page.Tasks {
			if taken[t.Agent] != nil {
				d.adoptOrphan(ctx, t, taken[t.Agent])
			}
		}
	}
	return nil
}

func (d *Dispatcher) adoptOrphan(ctx context.Context, t signalbox.Task, in *term) {
	d.Mu.Lock()
	l := d.Lanes[t.Agent]
	d.Mu.Unlock()
	stales, err := d.Engine.Read().Stales(ctx, t.ID)
	if l == nil || t.TaskID == "" || err != nil || slices.ContainsFunc(stales, func(s signalbox.Stale) bool { return s.Fence == t.Fence }) {
		return // best effort: no reason not to start
	}
	c, err := d.Engine.Load(ctx, t.ID) // its env is erased, but whether it had one is known
	if err != nil {
		c.Request.HadEnv = true
	}
	c.Task = t
	r := d.newRun(l, in, c)
	close(r.done) // it never had a goroutine of its own here
	d.track(r)
}

// awaitExit tells the agent to stop an orphan and follows it to its end, for at most the
// slot lease while the agent is up.
func (r *run) awaitExit(ctx context.Context) {
	d := r.d
	begun, told := d.opts.Monotonic(), false
	for delay := firstDelay; ctx.Err() == nil; delay = min(2*delay, maxDelay) {
		waited, there := d.awaitUp(ctx, r.lane)
		if waited {
			r.turn("run")
		}
		if waited {
			begun = d.opts.Monotonic()
		}
		if !there || d.opts.Monotonic().Sub(begun) >= d.Engine.Options().ExecutionTTL {
			return
		}
		known, err := r.identify(ctx)
		if !known && err == nil {
			return
		}
		if known && !told {
			told = d.sendCancelOnce(r)
		}
		if told {
			over, news := r.lastWord(ctx)
			if over {
				return
			}
			if news {
				delay = firstDelay
				continue
			}
		}
		r.lane.probing.Send()
		if !r.sleep(ctx, delay) {
			return
		}
	}
}

// lastWord waits for the end of an orphan, up to one long poll. over: nothing more will
// come; news: the agent answered.
func (r *run) lastWord(ctx context.Context) (over, news bool) {
	s, err := r.step(ctx)
	switch {
	case ctx.Err() != nil:
		return true, false
	case err == nil && execution.Ended(s.State):
		r.catchUp(ctx, s)
		o, _ := execution.Outcome(s, r.kind(), r.d.Engine.Now())
		o.Message = r.Mask.Hide(o.Message)
		r.Tail.Result(o.Result)
		r.keepStale(s, o)
		return true, true
	case statusOf(err) == http.StatusNotFound && !r.mayBeElsewhere(ctx, err):
		return true, true
	}
	return false, err == nil
}

// identify finds out the agent's id of an orphan whose offer it never answered. Under its
// queue_id the agent may know a newer execution of the same task, so the fence is compared,
// and the wrong one is not stopped.
func (r *run) identify(ctx context.Context) (known bool, err error) {
	r.d.Mu.Lock()
	known = r.agentTask != ""
	r.d.Mu.Unlock()
	if known || !r.endpoint().fencing {
		return known, nil
	}
	s, err := r.endpoint().conn.task(ctx, r.ID, 0)
	switch {
	case err == nil && s.Fence == r.Fence && s.TaskID != "":
		r.d.Mu.Lock()
		r.agentTask = s.TaskID
		r.d.Mu.Unlock()
		return true, nil
	case err == nil, unknownTask(err):
		return false, nil
	}
	return false, err
}

// awaitUp waits until the agent is up. there is false if it was removed.
func (d *Dispatcher) awaitUp(ctx context.Context, l *lane) (waited, there bool) {
	for {
		d.Mu.Lock()
		up, removed := l.Presence.Up(), l.Removed
		if !up && !removed && l.upAgain == nil {
			l.upAgain = make(chan struct{})
		}
		again := l.upAgain
		d.Mu.Unlock()
		if up || removed {
			return waited, up
		}
		waited = true
		select {
		case <-again:
		case <-ctx.Done():
			return waited, false
		}
	}
}

// keepStale stores the final report of an execution that no longer holds its slot.
func (r *run) keepStale(s api.AgentTaskStatus, o engine.Outcome) {
	r.d.Mu.Lock()
	was := r.staleKept
	r.staleKept = true
	r.d.Mu.Unlock()
	if was {
		return
	}
	o.TaskID = r.endpoint().id
	stale := execution.StaleReport(r.Fence, r.lane.Name, r.d.Engine.Now(), s.State, o)
	how, _ := execution.Settle(func() error { return r.d.Engine.KeepStale(r.term.ctx, r.ID, stale) },
		r.tryAgain(r.term.ctx, "late report of a void execution not stored, trying again"))
	if how == execution.Stored { // else the task was pruned
		r.d.Log.Info("", "queue", "stale_kept", "queue_id", r.ID, "agent", r.lane.Name, "fence", r.Fence, "agent_state", s.State)
	}
}
