package pull

import (
	"context"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/api"
	"github.com/signalbox-ai/signalbox/internal/engine"
	"github.com/signalbox-ai/signalbox/internal/execution"
)

// finished stores the agent's final report.
func (h *runReport) finished(ctx context.Context, rep *api.PullReport) (api.PullReported, error) {
	log, complete, err := h.finalLog(ctx, rep.Output)
	if err != nil || !complete {
		return api.PullReported{Next: h.run.Tail.Position(), Again: true}, err
	}
	o, lost := h.l.outcome(ctx, &h.task, h.lane.Row.Kind, rep.Finished)
	log.Result(o.Result)
	if signalbox.Isolated(h.task.Slot) {
		o.SessionID = ""
	}
	h.removeFromPoll(rep.Fence)
	was := h.task
	if lost {
		_, err = h.l.Engine.Lose(ctx, h.task, o.Reason, o.Message, false, o.Result)
	} else {
		_, err = h.l.Engine.Finish(ctx, h.task, o)
	}
	switch signalbox.CodeOf(err) {
	case "":
		h.l.noteSession(ctx, &was, o.SessionID)
		return api.PullReported{}, nil
	case signalbox.CodeAlreadyEnded, signalbox.CodeStaleFence, signalbox.CodeConflict: // decided already, perhaps by a duplicate of this report
		t, rerr := h.l.Engine.Read().Task(ctx, h.task.ID)
		if rerr != nil {
			return api.PullReported{}, rerr
		}
		return api.PullReported{}, h.l.lateReport(ctx, h.lane, &t, rep)
	}
	return api.PullReported{}, err
}

// outcome parses the agent's final report, with env values masked in its message.
func (l *Lanes) outcome(ctx context.Context, t *signalbox.Task, kind string, f *api.AgentTaskStatus) (engine.Outcome, bool) {
	o, lost := execution.Outcome(*f, kind, l.Engine.Now())
	o.Message = l.hide(ctx, t, o.Message)
	return o, lost
}

// lateReport answers a report on an execution that is over here: nil if it repeats what was
// stored, else CodeStaleFence; its final report is kept aside.
func (l *Lanes) lateReport(ctx context.Context, a *lane, t *signalbox.Task, rep *api.PullReport) error {
	f := rep.Finished
	if f != nil && t.Fence == rep.Fence && t.TaskID == f.TaskID && t.Reason.AgentSays() {
		return nil
	}
	if f != nil && !execution.Aborted(f) {
		o, _ := l.outcome(ctx, t, a.Row.Kind, f)
		if out := rep.Output; out != nil {
			o.Result.Tail, o.Result.TailSeq, o.Result.Truncated = out.Text, out.Seq, out.Truncated
		}
		err := l.Engine.KeepStale(ctx, t.ID, execution.StaleReport(rep.Fence, a.Name, l.Engine.Now(), f.State, o))
		if err != nil {
			return err
		}
		l.Log.Info("", "queue", "stale_kept", "queue_id", t.ID, "agent", a.Name, "fence", rep.Fence, "agent_state", f.State)
	}
	return signalbox.Errorf(signalbox.CodeStaleFence, "fence %d of task %s is void: the task is %s, with fence %d", rep.Fence, t.ID, t.State, t.Fence)
}
