package pull

import (
	"context"
	"time"

	"github.com/signalbox-ai/signalbox/api"
	"github.com/signalbox-ai/signalbox/internal/execution"
	"github.com/signalbox-ai/signalbox/internal/tail"
)

// print takes in a piece of the log, unless something between is missing here:
// the agent then sends it from the position that it is answered.
func (h *runReport) appendOutput(o *api.PullOutput) {
	at := h.run.Tail.Position()
	if o.Seq != at && (o.Seq < at || !o.Truncated) {
		return
	}
	if o.Next == at {
		return
	}
	h.run.Tail.Add(o.Seq, o.Text, o.Next)
	now := h.l.Engine.Now()
	h.l.Mu.Lock()
	h.run.Printed, h.lane.Progress = now, latest(h.lane.Progress, now)
	h.l.Update(h.lane)
	h.l.Mu.Unlock()
}

// wholeLog is the log of a run that has ended, as far as it is kept. whole is
// false where what the agent sent does not follow what is here.
func (h *runReport) finalLog(ctx context.Context, o *api.PullOutput) (log *tail.Tail, complete bool, err error) {
	if o == nil {
		return h.run.Tail, true, nil
	}
	at := h.run.Tail.Position()
	switch {
	case o.Seq == at || o.Next == at:
		h.appendOutput(o)
		return h.run.Tail, true, nil
	case o.Seq > at && !o.Truncated:
		return nil, false, nil
	}
	// The agent sent more than was missing here, from an earlier position. Where
	// to join the two is not known in characters: what it sent stands for itself.
	log = tail.New()
	if err := execution.ContinueLog(ctx, h.l.Engine.Read(), &h.task, log); err != nil {
		return nil, false, err
	}
	if o.Seq > 0 || o.Text != "" {
		log.Add(o.Seq, o.Text, o.Next)
	}
	return log, true, nil
}

// Output returns what was reported here of the log of a running task. ok is false
// where another director has that: the log goes to the one that holds the agent.
func (l *Lanes) Output(ctx context.Context, id string, after int64, wait time.Duration) (out api.Output, ok bool) {
	agent := ""
	l.Mu.Lock()
	if r := l.Runs[id]; r != nil {
		agent = r.Task.Agent
	}
	l.Mu.Unlock()
	if agent == "" || !l.Holds(agent) {
		return out, false
	}
	return l.registry.Output(ctx, id, after, wait)
}
