package push

import (
	"cmp"
	"context"
	"errors"
	"strings"
	"time"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/api"
	"github.com/signalbox-ai/signalbox/internal/engine"
	"github.com/signalbox-ai/signalbox/internal/execution"
)

// run is one execution, from its claim or adoption to its end.
type run struct {
	execution.Run // guarded by Mu, except the tail

	d       *Dispatcher
	lane    *lane
	term    *term // in which it was begun
	ctx     context.Context
	stop    context.CancelFunc // ends following
	pollNow execution.Signal   // capacity 1: poll a plain agent now
	done    chan struct{}      // closed when its own goroutine has ended

	adopted bool   // started by another director
	session string // the session of its row when it was claimed or adopted

	trace   string // traceparent for the agent
	request signalbox.Request
	env     map[string]string // of the task
	holds   []signalbox.Hold  // of its claim

	agentTask  string // the agent's own id for it, "" until known; guarded by Mu
	cancelling bool   // a goroutine is sending a cancel to the agent; guarded by Mu
	refused    bool   // the agent said busy; guarded by Mu
	withheld   bool   // it ended as lost and its slot is withheld; guarded by Mu
	tracked    bool   // it is followed as an orphan; guarded by Mu
	staleKept  bool   // its final report is stored; guarded by Mu
	ending     bool   // its end is being stored, and its slot may already be claimed; guarded by Mu
	clocks     clocks // guarded by Mu
	noOutput   bool   // the agent serves no log; used by the run's own goroutine
	// seenBefore are the runs that a plain agent reported when it was asked about this one,
	// "" for an unnamed one; used by the run's own goroutine.
	seenBefore map[string]bool
}

// endpoint is what a run needs to query its agent.
type endpoint struct {
	conn     *conn  // changes when the agent moves
	id       string // the agent's id for the task, else its queue_id
	fencing  bool   // the agent understands fences
	known    bool   // the agent has reported its status
	longPoll bool   // the agent supports long polls
}

func (r *run) endpoint() endpoint {
	r.d.Mu.Lock()
	defer r.d.Mu.Unlock()
	l := r.lane
	return endpoint{
		conn: l.conn, id: cmp.Or(r.agentTask, r.ID), fencing: l.Row.Fencing, known: l.status.AgentKind != "", longPoll: l.status.LongPoll,
	}
}

// mayBeElsewhere reports whether the answer that the task is unknown came from another
// address than the one that got the offer, while something still listens there. Then the
// answer proves nothing: the other agent may have the task.
func (r *run) mayBeElsewhere(ctx context.Context, word error) bool {
	var no *execution.Refusal
	first := strings.TrimRight(r.row().AgentURL, "/")
	if !errors.As(word, &no) || no.From == first {
		return false
	}
	_, err := newConn(first, "", discoverTimeout, r.d.opts.Transport).status(ctx) // without the token: it may belong to someone else now
	return !refused(err)
}

// kind is the kind of its agent.
func (r *run) kind() string {
	r.d.Mu.Lock()
	defer r.d.Mu.Unlock()
	return r.lane.Row.Kind
}

func (r *run) row() signalbox.Task {
	r.d.Mu.Lock()
	defer r.d.Mu.Unlock()
	return r.Task
}

// setRow stores a newer row, unless it is that of another execution: this one must never
// write with the other's fence.
func (r *run) setRow(t signalbox.Task) {
	r.d.Mu.Lock()
	defer r.d.Mu.Unlock()
	r.Update(t)
	if t.TaskID != "" && t.Fence == r.Fence {
		r.agentTask = t.TaskID
	}
}

// markHeard records that the agent reported on this task.
func (r *run) markHeard() { r.recordReply(nil, nil) }

// recordReply records what the agent reported on this task: a piece of its log, its state,
// or neither. It reports whether the log has grown.
func (r *run) recordReply(o *api.AgentOutput, s *api.AgentTaskStatus) (news bool) {
	d := r.d
	wall := d.Engine.Now()
	if o != nil && o.Next > r.Tail.Position() {
		r.Tail.Add(o.Seq, o.Text, o.Next)
		news = true
	}
	d.Mu.Lock()
	now := d.opts.Monotonic()
	r.Heard = now
	if o != nil {
		r.SetNote(o.Note)
		d.ReportUsage(&r.Run, o.TokenUsage, o.CostUSD)
	}
	if s != nil && !execution.Ended(s.State) {
		d.ReportUsage(&r.Run, s.TokenUsage, s.CostUSD)
	}
	if news {
		r.lane.Progress, r.Printed, r.clocks.progressAt = wall, wall, now
	}
	if !r.Isolated {
		d.ReportAccount(r.lane, accountIn(o, s))
	}
	if s != nil && s.StartedAt != nil {
		r.recordProgress(api.AgentCurrentTask{StartedAt: *s.StartedAt, LastProgressAt: s.LastProgressAt}, now, wall)
	}
	d.agentHeard(r.lane, true)()
	return news
}

// accountIn is what a reply reports about the account that the run spends. A final report is newer than the
// log.
func accountIn(o *api.AgentOutput, s *api.AgentTaskStatus) *api.AgentAccount {
	switch {
	case s != nil && s.Account != nil:
		return s.Account
	case o != nil && o.Final != nil && o.Final.Account != nil:
		return o.Final.Account
	case o != nil:
		return o.Account
	}
	return nil
}

// silence is the time since the agent last reported on this task.
func (r *run) silence() time.Duration {
	r.d.Mu.Lock()
	defer r.d.Mu.Unlock()
	return r.d.opts.Monotonic().Sub(r.Heard)
}

// offer is the task in the form that the agent gets.
func (r *run) offer() api.AgentTask {
	t := r.row()
	offer := execution.Offer(r.d.Engine, engine.Claimed{Task: t, Request: r.request, Env: r.env, Holds: r.holds}, r.d.ID)
	offer.RunToken = r.d.Engine.Options().Sealer.RunToken(t.ID, t.Fence)
	return offer
}

// startTrace sets the traceparent of the execution.
func (r *run) startTrace() {
	if r.d.opts.Traces != nil {
		t := r.Task
		r.trace = r.d.opts.Traces.Execution(&t, r.request.Trace, r.adopted)
	}
}

// dispatch sends a claimed task and follows it to its end.
func (r *run) dispatch(ctx context.Context) {
	if !r.d.Holds(r.lane.Name) {
		return // this process was paused; the director that holds the agent now asks it, and finds that it got nothing
	}
	offer := r.offer()
	r.continueSession(ctx, &offer)
	sending, cancel := context.WithTimeout(ctx, r.d.opts.DispatchTimeout)
	w := r.endpoint()
	accepted, err := w.conn.start(sending, offer, w.fencing, r.trace)
	cancel()
	var no *execution.Refusal
	switch {
	case err == nil:
		r.markHeard()
		r.accept(ctx, accepted.TaskID, accepted.SessionID)
	case ctx.Err() != nil: // shutting down: the next director asks the agent
	case unsent(err):
		r.d.unreachable(r.lane, err.Error())
		r.lane.probing.Send()
		r.refuse(ctx, "agent unreachable: "+err.Error())
	case errors.As(err, &no):
		r.markHeard()
		r.change(ctx, no.Refused(r.offered(), r.Mask.Hide))
	default: // sent, without a conclusive answer
		r.ask(ctx, err)
	}
}

// refuse returns the task because of its agent.
func (r *run) refuse(ctx context.Context, message string) {
	r.change(ctx, execution.ReturnTask(r.offered(), r.Mask.Hide(message), false))
}

func (r *run) change(ctx context.Context, change execution.Change) {
	r.settle(ctx, func(t signalbox.Task) (signalbox.Task, error) { return change(ctx, r.d.Engine, t) })
}

// settle makes a change that must not get lost, with retries (execution.Settle).
func (r *run) settle(ctx context.Context, change func(signalbox.Task) (signalbox.Task, error)) execution.SettleResult {
	how, err := execution.Settle(func() error {
		t, err := change(r.row())
		if err == nil {
			r.setRow(t)
		}
		return err
	}, r.tryAgain(ctx, "change not stored, trying again"))
	if how == execution.Void {
		r.d.Log.Warn("late report of a void execution ignored", "queue_id", r.ID, "agent", r.lane.Name, "error", err)
	}
	return how
}

// tryAgain returns the failed callback of execution.Settle.
func (r *run) tryAgain(ctx context.Context, what string) func(error, time.Duration) bool {
	return func(err error, pause time.Duration) bool {
		if ctx.Err() != nil {
			return false
		}
		r.d.Log.Error(what, "queue_id", r.ID, "error", err)
		return r.sleep(ctx, pause)
	}
}

// accept records that the agent runs the task, and follows it. If the task was taken away
// meanwhile, the agent is told to stop it.
func (r *run) accept(ctx context.Context, taskID, sessionID string) {
	if r.Isolated {
		sessionID = ""
	}
	r.d.MarkHealthy(r.lane)
	r.d.Mu.Lock()
	r.agentTask = taskID
	if r.Isolated {
		r.lane.Bypass.Accepted()
	}
	r.d.Mu.Unlock()
	r.startClocks()
	how := r.settle(ctx, func(t signalbox.Task) (signalbox.Task, error) {
		return r.d.Engine.Accept(ctx, t, taskID, sessionID)
	})
	switch how {
	case execution.Interrupted:
		return
	case execution.Void:
		r.d.track(r)
		return
	}
	r.noteSession(ctx, sessionID)
	if r.row().State == signalbox.Cancelling {
		r.d.sendCancel(r)
	}
	r.follow(ctx)
}

func (r *run) turn(what string) { r.d.Turn(what, r.ID, r.Fence) }

// sleep is execution.Sleep on the run's own goroutine.
func (r *run) sleep(ctx context.Context, d time.Duration) bool {
	ok := execution.Sleep(ctx, d)
	r.turn("run")
	return ok
}
