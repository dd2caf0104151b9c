package push

import (
	"context"
	"net/http"
	"time"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/api"
	"github.com/signalbox-ai/signalbox/internal/execution"
)

// follow follows a running task until the agent reports its end, no longer knows it, or has
// been silent for the slot lease.
func (r *run) follow(ctx context.Context) {
	for delay := firstDelay; ctx.Err() == nil; {
		s, err := r.step(ctx)
		switch {
		case ctx.Err() != nil: // shutting down, or the task was taken away
			return
		case err == nil && execution.Ended(s.State):
			r.ended(ctx, s)
			return
		case err == nil && r.overstaysStop():
			r.lose(ctx, signalbox.ReasonLost, "agent "+r.lane.Name+" was told to stop the run, and says that it goes on")
			return
		case err == nil:
			delay = firstDelay
			continue
		case statusOf(err) == http.StatusNotFound && !r.mayBeElsewhere(ctx, err):
			if r.lostByAgent(ctx) {
				return
			}
			if r.silence() >= r.d.Engine.Options().ExecutionTTL {
				r.lose(ctx, signalbox.ReasonLost, r.silenceMessage(err))
				return
			}
		case r.silence() >= r.d.Engine.Options().ExecutionTTL:
			r.lose(ctx, signalbox.ReasonLost, r.silenceMessage(err))
			return
		}
		r.lane.probing.Send()
		if !r.sleep(ctx, delay) {
			return
		}
		delay = min(2*delay, maxDelay)
	}
}

// step waits for news of the task and records it. It returns the state once the task has
// ended.
func (r *run) step(ctx context.Context) (api.AgentTaskStatus, error) {
	w, err := r.knownEndpoint(ctx)
	if err != nil {
		return api.AgentTaskStatus{}, err
	}
	if !w.longPoll {
		return r.poll(ctx, w)
	}
	begun := time.Now()
	s, news, err := r.listen(ctx, w)
	if err == nil && !news && time.Since(begun) < firstDelay {
		r.sleep(ctx, firstDelay) // it does not support long polls after all
	}
	return s, err
}

// listen makes one long poll: of the log, and of the state at the end of the log. news says
// whether there was any.
func (r *run) listen(ctx context.Context, w endpoint) (s api.AgentTaskStatus, news bool, err error) {
	wait := r.d.opts.FollowWait
	var quiet *api.AgentOutput // an empty piece: only together with the state does it count as a report
	if !r.noOutput {
		o, err := w.conn.output(ctx, w.id, r.Tail.Position(), wait)
		news = err == nil && o.Next > r.Tail.Position()
		ended := err == nil && o.Done && o.Final != nil && execution.Ended(o.Final.State)
		switch {
		case statusOf(err) == http.StatusNotFound:
			r.noOutput = true // or the task is unknown: its state will tell
		case err != nil:
			return s, false, err
		case news || ended:
			r.recordReply(&o, nil)
		default:
			quiet = &o
		}
		switch {
		case err != nil:
		case ended:
			return *o.Final, true, nil // the log came with the end
		case !o.Done && news:
			return api.AgentTaskStatus{State: "working"}, true, nil
		case !o.Done:
			wait = 0 // an empty log proves little: request the state
		}
	}
	if s, err = w.conn.task(ctx, w.id, wait); err == nil {
		r.recordReply(quiet, &s)
	}
	return s, news || execution.Ended(s.State), err
}

// poll queries an agent without long polls, every PollInterval (the seed: 5 s).
func (r *run) poll(ctx context.Context, w endpoint) (api.AgentTaskStatus, error) {
	s, err := w.conn.task(ctx, w.id, 0)
	if err != nil {
		return s, err
	}
	r.recordReply(r.outputOf(s), &s)
	if !execution.Ended(s.State) {
		timer := time.NewTimer(r.d.opts.PollInterval)
		defer timer.Stop()
		select {
		case <-timer.C:
		case <-r.pollNow:
		case <-ctx.Done():
		}
		r.turn("run")
		execution.Taken(r.pollNow)
	}
	return s, nil
}

// outputOf treats a plain agent's answer so far as its log; nil if it has not grown.
func (r *run) outputOf(s api.AgentTaskStatus) *api.AgentOutput {
	at, n := r.Tail.Position(), int64(len(s.Output))
	if n <= at {
		return nil
	}
	return &api.AgentOutput{Seq: at, Text: s.Output[at:], Next: n}
}

// knownEndpoint returns the endpoint of an agent, after its status if that was not known.
func (r *run) knownEndpoint(ctx context.Context) (endpoint, error) {
	w := r.endpoint()
	if w.known {
		return w, nil
	}
	s, err := w.conn.status(ctx)
	if err == nil {
		r.d.applyStatus(r.lane, s)
		w.longPoll = s.LongPoll
	}
	return w, err
}

// ended stores the agent's final report.
func (r *run) ended(ctx context.Context, s api.AgentTaskStatus) {
	r.catchUp(ctx, s)
	o, lost := execution.Outcome(s, r.kind(), r.d.Engine.Now())
	o.Message = r.Mask.Hide(o.Message)
	if r.Isolated {
		o.SessionID = ""
	}
	r.Tail.Result(o.Result)
	var how execution.SettleResult
	if lost {
		how = r.loseWith(ctx, o.Reason, o.Message, o.Result)
	} else {
		finish := r.d.claimBehind(ctx, r)
		how = r.settle(ctx, func(t signalbox.Task) (signalbox.Task, error) { return r.d.Engine.Finish(finish, t, o) })
	}
	if how != execution.Stored {
		r.d.cancelEnding(r)
	}
	switch how {
	case execution.Stored:
		r.noteSession(ctx, o.SessionID)
	case execution.Void:
		r.keepStale(s, o)
	}
}

// catchUp reads the rest of the log of a run that ended while nobody followed it.
func (r *run) catchUp(ctx context.Context, s api.AgentTaskStatus) {
	w, err := r.knownEndpoint(ctx)
	if err != nil {
		return
	}
	if !w.longPoll {
		r.recordReply(r.outputOf(s), nil)
		return
	}
	from := max(r.Tail.Position(), s.OutputSeq-signalbox.TailBytes)
	for from < s.OutputSeq && !r.noOutput {
		o, err := w.conn.output(ctx, s.TaskID, from, 0)
		if err != nil || o.Next <= from {
			return // s has the answer; the log stays on the agent
		}
		r.recordReply(&o, nil)
		from = o.Next
	}
}

// lostByAgent handles a running task that its agent no longer knows by its id. A plain
// agent may list it in its history. over is false if that could not be read.
func (r *run) lostByAgent(ctx context.Context) (over bool) {
	if !r.endpoint().fencing {
		s, found, err := r.inHistory(ctx)
		switch {
		case err != nil:
			return false // no result: ask again
		case found:
			r.markHeard()
			r.ended(ctx, s)
			return true
		}
	}
	r.markHeard()
	r.lose(ctx, signalbox.ReasonLost, "agent "+r.lane.Name+" no longer knows the task: it was restarted or its history is gone")
	return true
}

// lose ends an execution without a final report.
func (r *run) lose(ctx context.Context, reason signalbox.Reason, message string) {
	if !r.d.Holds(r.lane.Name) {
		return // this process was paused: the director that holds the agent now follows the task
	}
	mayRun := r.mayRun()
	if how := r.loseWith(ctx, reason, message, r.d.LostResult(&r.Run)); how != execution.Interrupted && mayRun {
		r.d.track(r) // when the agent is back it is told to stop, and its final report is kept
	}
}

// mayRun reports whether the run may not be over: its agent is silent, or says that it
// continues.
func (r *run) mayRun() bool {
	return r.silence() >= r.d.Engine.Options().ExecutionTTL || r.overstaysStop()
}

func (r *run) loseWith(ctx context.Context, reason signalbox.Reason, message string, result *signalbox.Result) execution.SettleResult {
	return r.loseAs(ctx, func(t signalbox.Task, withhold bool) (signalbox.Task, error) {
		return r.d.Engine.Lose(ctx, t, reason, message, withhold, result)
	})
}

// loseAs stores a loss; lose is told whether to withhold the slot.
func (r *run) loseAs(ctx context.Context, lose func(t signalbox.Task, withhold bool) (signalbox.Task, error)) execution.SettleResult {
	// An agent that ignores fences may still run it: its slot is not free until it says so.
	withhold := !r.endpoint().fencing && r.mayRun()
	how := r.settle(ctx, func(t signalbox.Task) (signalbox.Task, error) { return lose(t, withhold) })
	if how == execution.Stored && withhold {
		r.d.Mu.Lock()
		r.withheld = true
		r.d.Mu.Unlock()
	}
	return how
}
