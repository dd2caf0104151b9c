package push

import (
	"context"
	"errors"
	"net/http"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/api"
)

// WholeLog returns what the agent of a task has of the log of its last attempt from byte
// after on, at most 128 KiB, at once. Any director may ask: it changes nothing.
//
// Codes: CodeAgentDown, also for an agent that is not registered; CodeNotFound if it does
// not have the log.
func (d *Dispatcher) WholeLog(ctx context.Context, t *signalbox.Task, after int64) (api.AgentOutput, error) {
	d.Mu.Lock()
	l := d.Lanes[t.Agent]
	if l == nil {
		d.Mu.Unlock()
		return api.AgentOutput{}, signalbox.Errorf(signalbox.CodeAgentDown, "agent %s is not registered", t.Agent)
	}
	conn := l.conn
	d.Mu.Unlock()
	out, err := conn.output(ctx, t.TaskID, after, 0)
	if err == nil && (out.Seq < 0 || out.Next < out.Seq) {
		err = errors.New("positions in the log make no sense")
	}
	switch {
	case err == nil:
		return out, nil
	case statusOf(err) == http.StatusNotFound:
		return out, signalbox.Errorf(signalbox.CodeNotFound, "agent %s does not have the log of this task", t.Agent)
	}
	return out, signalbox.Errorf(signalbox.CodeAgentDown, "agent %s does not give the log: %v", t.Agent, err)
}
