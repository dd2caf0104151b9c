package engine

import (
	"context"

	"github.com/signalbox-ai/signalbox"
)

// Cancel asks to stop a task. A pending one is cancelled at once; one that is
// dispatching is when the agent's reply comes; a working one becomes
// cancelling, and the dispatcher tells its agent. Cancelling twice is no
// error.
//
// Errors: CodeNotFound; CodeAlreadyEnded, with the row.
func (e *Engine) Cancel(ctx context.Context, id, by string) (signalbox.Task, error) {
	return e.apply(ctx, id, nil, signalbox.Event{Kind: signalbox.EventCancel, By: by})
}

// ClearLane cancels all that waits in an agent's own queue and returns how
// many that were. What runs goes on, also what began to in the meantime.
func (e *Engine) ClearLane(ctx context.Context, agent, by string) (int, error) {
	if err := executorRefusal(agent); err != nil {
		return 0, err
	}
	if _, err := e.Agent(ctx, agent); err != nil {
		return 0, err
	}
	waiting, err := e.waiting(ctx, signalbox.AgentQueue(agent))
	if err != nil {
		return 0, err
	}
	n := 0
	for _, t := range waiting {
		_, err := e.apply(ctx, t.ID, &t, signalbox.Event{Kind: signalbox.EventCancel, Waiting: true, By: by})
		switch signalbox.CodeOf(err) {
		case "":
			n++
		case signalbox.CodeConflict, signalbox.CodeAlreadyEnded, signalbox.CodeNotFound: // it was taken or ended first
		default:
			return n, err
		}
	}
	return n, nil
}
