package pull

import (
	"context"
	"time"

	"github.com/signalbox-ai/signalbox/api"
	"github.com/signalbox-ai/signalbox/internal/execution"
	"github.com/signalbox-ai/signalbox/internal/tail"
)

// appendOutput appends a piece of the log, unless something before it is missing here: the
// agent then resends from the position in the answer.
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

// finalLog returns the log of an ended run, as far as it is kept. complete is false if what
// the agent sent leaves a gap.
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
	// The agent sent more than was missing, from an earlier position. Where the two overlap
	// is not known in characters: use what it sent.
	log = tail.New(h.l.Engine.Now)
	if err := execution.ContinueLog(ctx, h.l.Engine.Read(), &h.task, log); err != nil {
		return nil, false, err
	}
	if o.Seq > 0 || o.Text != "" {
		log.Add(o.Seq, o.Text, o.Next)
	}
	return log, true, nil
}

// Output returns the log of a running task as reported here. ok is false if another
// director has it: agents send logs to the director that holds them.
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
