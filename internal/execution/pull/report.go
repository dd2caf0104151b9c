package pull

import (
	"context"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/api"
	"github.com/signalbox-ai/signalbox/internal/execution"
)

// Report handles an agent's report on a task. It returns when the report is stored.
//
// Errors: CodeNotFound if there is no such task, or the agent never had it; CodeStaleFence
// if the execution was taken away; CodeConflict if another instance has the agent's name.
func (l *Lanes) Report(ctx context.Context, name, id string, rep api.PullReport) (api.PullReported, error) {
	if err := checkReport(&rep); err != nil {
		return api.PullReported{}, err
	}
	a, err := l.laneOf(ctx, name, rep.Instance)
	if err != nil {
		return api.PullReported{}, err
	}
	t, err := l.Engine.Read().Task(ctx, id)
	if err != nil {
		return api.PullReported{}, err
	}
	switch {
	case t.Agent != name && (t.Claims < 2 || rep.Fence >= t.Fence), rep.Fence > t.Fence:
		return api.PullReported{}, signalbox.Errorf(signalbox.CodeNotFound, "agent %s was never given task %s with fence %d", name, id, rep.Fence)
	case !holds(name, rep.Fence, &t):
		return api.PullReported{}, l.lateReport(ctx, a, &t, &rep)
	}
	h, err := l.openReport(ctx, a, t)
	if err != nil {
		return api.PullReported{}, err
	}
	return h.report(ctx, &rep)
}

func checkReport(rep *api.PullReport) error {
	n := 0
	for _, is := range []bool{rep.Accepted != nil, rep.Refused != nil, rep.Finished != nil, rep.Unknown} {
		if is {
			n++
		}
	}
	switch o := rep.Output; {
	case n > 1 || (n == 0 && o == nil):
		return signalbox.Errorf(signalbox.CodeValidation, "a report has one of accepted, refused, finished and unknown, or output alone")
	case rep.Fence < 0:
		return signalbox.Invalid("fence", "fence must be 0 or more, not %d", rep.Fence)
	case o != nil && (o.Seq < 0 || o.Next < o.Seq || o.Next > maxPosition):
		return signalbox.Invalid("output", "output must have 0 <= seq <= next <= %d, not %d and %d", int64(maxPosition), o.Seq, o.Next)
	case o != nil && !plausibleSpan(o):
		return signalbox.Invalid("output", "output goes from seq %d to next %d, and its text has %d bytes: next must be seq and the bytes that text stands for", o.Seq, o.Next, len(o.Text))
	case rep.Refused != nil && rep.Refused.HighestFence < 0:
		return signalbox.Invalid("refused.highest_fence", "refused.highest_fence must be 0 or more, not %d", rep.Refused.HighestFence)
	case rep.Accepted != nil && (rep.Accepted.TaskID == "" || len(rep.Accepted.TaskID) > execution.MaxAgentID):
		return signalbox.Invalid("accepted.task_id", "accepted.task_id must have 1 to %d bytes", execution.MaxAgentID)
	case rep.Finished != nil && !execution.Ended(rep.Finished.State):
		return signalbox.Invalid("finished.state", "finished.state must be completed, failed, cancelled or timeout, not %q", execution.SanitizeText(rep.Finished.State))
	case rep.Refused != nil && (rep.Refused.Status < 400 || rep.Refused.Status > 599):
		return signalbox.Invalid("refused.status", "refused.status must be 400 to 599, not %d", rep.Refused.Status)
	}
	return nil
}

const (
	// Bounds of a piece of a log: its highest position, and how many bytes that are not
	// text it may stand for.
	maxPosition = 1 << 53
	maxPiece    = 1 << 20
)

// plausibleSpan reports whether a piece of a log can span seq to next. Invalid UTF-8
// arrives as U+FFFD, one for each byte or one for several.
func plausibleSpan(o *api.PullOutput) bool {
	n, text := o.Next-o.Seq, int64(len(o.Text))
	if n == text {
		return true
	}
	return strings.ContainsRune(o.Text, utf8.RuneError) && text <= 3*n && n <= max(text, maxPiece)
}

// runReport is a report on an execution that its agent has.
type runReport struct {
	l    *Lanes
	lane *lane
	run  *run
	task signalbox.Task
}

func (l *Lanes) openReport(ctx context.Context, a *lane, t signalbox.Task) (*runReport, error) {
	l.Mu.Lock()
	r := l.putRun(a, t)
	r.Heard = l.opts.Monotonic()
	follows := r.logContinued
	l.Mu.Unlock()
	if !follows && t.Attempts > 0 {
		earlier, err := l.Engine.Read().Result(ctx, t.ID)
		if err != nil {
			return nil, err
		}
		l.Mu.Lock()
		if !r.logContinued {
			r.Tail.Follow(earlier)
			r.logContinued = true
		}
		l.Mu.Unlock()
	}
	return &runReport{l, a, r, t}, nil
}

func (h *runReport) report(ctx context.Context, rep *api.PullReport) (api.PullReported, error) {
	switch {
	case rep.Finished != nil:
		return h.finished(ctx, rep)
	case rep.Refused != nil:
		h.removeFromPoll(rep.Fence)
		return api.PullReported{}, execution.UnlessDecided(h.refused(ctx, rep.Refused))
	case rep.Unknown:
		h.removeFromPoll(rep.Fence)
		return api.PullReported{}, execution.UnlessDecided(h.unknown(ctx))
	case rep.Accepted != nil:
		if err := h.accepted(ctx, rep.Accepted); err != nil {
			return api.PullReported{}, err
		}
	}
	h.l.Mu.Lock()
	h.run.SetNote(rep.Note)
	h.l.ReportUsage(&h.run.Run, rep.TokenUsage, rep.CostUSD)
	if rep.Account != nil && !h.run.Isolated {
		h.l.ReportAccount(h.lane, rep.Account)
	}
	h.l.Update(h.lane)
	h.l.Mu.Unlock()
	if rep.Output != nil {
		h.appendOutput(rep.Output)
	}
	out := api.PullReported{Next: h.run.Tail.Position()}
	if h.task.CancelRequested {
		out.Stop = &api.PullStop{QueueID: h.task.ID, Fence: h.task.Fence}
	}
	return out, nil
}

// removeFromPoll removes the run from those that its agent's current claim named: the agent
// is done with it.
func (h *runReport) removeFromPoll(fence int64) {
	h.l.Mu.Lock()
	defer h.l.Mu.Unlock()
	if p := h.lane.poll; p != nil {
		p.runs = slices.DeleteFunc(p.runs, func(s api.PullRun) bool { return s.QueueID == h.task.ID && s.Fence == fence })
	}
}

func (h *runReport) accepted(ctx context.Context, acc *api.PullAccepted) error {
	session := acc.SessionID
	if !signalbox.ValidSessionID(session) || signalbox.Isolated(h.task.Slot) {
		session = ""
	}
	was := h.task
	t, err := h.l.Engine.Accept(ctx, h.task, acc.TaskID, session)
	if err != nil {
		return staleError(err)
	}
	h.task = t
	h.l.noteSession(ctx, &was, session)
	return nil
}

// staleError is an error of the engine as the agent gets it: an execution about which
// something was decided meanwhile is void.
func staleError(err error) error {
	switch signalbox.CodeOf(err) {
	case signalbox.CodeAlreadyEnded, signalbox.CodeConflict:
		return signalbox.Errorf(signalbox.CodeStaleFence, "%v", err)
	}
	return err
}

// noteSession records the session in which the agent says it ran a chat, if the chat named
// none.
func (l *Lanes) noteSession(ctx context.Context, t *signalbox.Task, session string) {
	if t.Mode != signalbox.ModeChat || session == "" || t.SessionID != "" {
		return
	}
	if err := l.Engine.AdoptSession(ctx, *t, session); err != nil && ctx.Err() == nil {
		l.Log.Error("conversation not made the current one", "queue_id", t.ID, "agent", t.Agent, "session", session, "error", err)
	}
}

// refused handles that the agent did not take a task.
func (h *runReport) refused(ctx context.Context, no *api.PullRefused) error {
	r := execution.Refusal{Status: no.Status, AgentRefusal: api.AgentRefusal{
		Error: no.Error, Message: no.Message, HighestFence: no.HighestFence, CurrentTask: &api.AgentCurrentTask{ID: no.BusyWith},
	}}
	by := execution.OfferReply[*lane, *run]{Registry: &h.l.registry, Agent: h.lane, Run: &h.run.Run, Busy: func(string) { h.lane.refused = true }}
	hide := func(text string) string { return h.l.hide(ctx, &h.task, text) }
	_, err := r.Refused(&by, hide)(ctx, h.l.Engine, h.task)
	return err
}

// unknown handles that the agent does not know the execution.
func (h *runReport) unknown(ctx context.Context) error {
	if h.task.State == signalbox.Dispatching {
		_, err := h.l.Engine.Unsent(ctx, h.task, "the task did not reach its agent")
		return err
	}
	return h.lose(ctx, "agent "+h.lane.Name+" no longer knows the task: it was restarted or its history is gone")
}

// lose ends an execution without a final report.
func (h *runReport) lose(ctx context.Context, message string) error {
	_, err := h.l.Engine.Lose(ctx, h.task, signalbox.ReasonLost, message, false, h.l.LostResult(&h.run.Run))
	return err
}
