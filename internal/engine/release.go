package engine

import (
	"context"

	"github.com/signalbox-ai/signalbox"
)

// ReleaseLane takes the slots of an agent away from the tasks that hold them
// and returns their ids. The tasks end as released (cancelled where someone
// had asked for that); whatever their executions say later is stale. Isolated
// executions stand beside the lane: only those that someone has asked to stop
// lose their slots with it.
func (e *Engine) ReleaseLane(ctx context.Context, agent, by string) ([]string, error) {
	if err := executorRefusal(agent); err != nil {
		return nil, err
	}
	if _, err := e.knownAgent(ctx, agent); err != nil {
		return nil, err
	}
	slots, err := e.store.Slots(ctx)
	if err != nil {
		return nil, err
	}
	var ids []string
	for _, s := range slots {
		if s.Agent != agent {
			continue
		}
		spared, err := e.spared(ctx, s)
		if err != nil {
			return ids, err
		}
		if spared {
			continue
		}
		if err := e.release(ctx, s, by); err != nil {
			return ids, err
		}
		ids = append(ids, s.TaskID)
	}
	if len(ids) == 0 { // nothing held a slot; what still withholds offers from the agent is told to let go
		e.hub.publish(&Applied{Kind: signalbox.EventRelease, Task: signalbox.Task{Agent: agent}, By: by})
		e.tellOthers(ctx, signalbox.Entry{Kind: signalbox.EventRelease, Agent: agent, By: by})
	}
	return ids, nil
}

// spared reports whether a slot is one of the bypass whose execution goes on.
func (e *Engine) spared(ctx context.Context, s signalbox.Slot) (bool, error) {
	if !signalbox.Isolated(s.Slot) || s.Withheld {
		return false, nil
	}
	t, err := e.store.Task(ctx, s.TaskID)
	if signalbox.CodeOf(err) == signalbox.CodeNotFound {
		return false, nil
	}
	return !t.CancelRequested, err
}

func (e *Engine) release(ctx context.Context, s signalbox.Slot, by string) error {
	if s.Withheld {
		_, err := e.FreeSlot(ctx, s)
		if err == nil {
			e.hub.publish(&Applied{Kind: signalbox.EventRelease, Task: signalbox.Task{ID: s.TaskID, Agent: s.Agent, Slot: s.Slot, Fence: s.Fence}, By: by})
			e.tellOthers(ctx, signalbox.Entry{Kind: signalbox.EventRelease, Agent: s.Agent, Fence: s.Fence, By: by})
		}
		return err
	}
	_, err := e.apply(ctx, s.TaskID, nil, signalbox.Event{Kind: signalbox.EventRelease, Fence: s.Fence, By: by})
	switch signalbox.CodeOf(err) {
	case signalbox.CodeAlreadyEnded, signalbox.CodeStaleFence, signalbox.CodeConflict:
		return nil // it let go of the slot by itself in the meantime
	}
	return err
}

// tellOthers writes down what is no change of a task, where other directors go
// by what stands in the journal: the one that dispatches to the agent must hear
// of it.
func (e *Engine) tellOthers(ctx context.Context, entry signalbox.Entry) {
	if !e.following.Load() {
		return
	}
	entry.At = e.Now()
	if err := e.store.Note(context.WithoutCancel(ctx), entry); err != nil {
		e.log.Error("the director that dispatches to an agent was not told", "kind", entry.Kind, "agent", entry.Agent, "error", err)
	}
	e.hub.noted()
}

// Cancel asks to stop a task. A pending one is cancelled at once; one that is
// dispatching is when the agent's reply comes; a working one becomes
// cancelling, and the dispatcher tells its agent. Cancelling twice is no
// error.
//
// Errors: CodeNotFound; CodeAlreadyEnded, with the row.
func (e *Engine) Cancel(ctx context.Context, id, by string) (signalbox.Task, error) {
	return e.apply(ctx, id, nil, signalbox.Event{Kind: signalbox.EventCancel, By: by})
}

// CancelTask is Cancel for a caller that has read the task.
func (e *Engine) CancelTask(ctx context.Context, t *signalbox.Task, by string) (signalbox.Task, error) {
	return e.apply(ctx, t.ID, t, signalbox.Event{Kind: signalbox.EventCancel, By: by})
}

// ClearLane cancels all that waits in an agent's own queue and returns how
// many that were. What runs goes on, also what began to in the meantime.
func (e *Engine) ClearLane(ctx context.Context, agent, by string) (int, error) {
	if err := executorRefusal(agent); err != nil {
		return 0, err
	}
	if _, err := e.knownAgent(ctx, agent); err != nil {
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
