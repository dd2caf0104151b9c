package engine

import (
	"context"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/internal/store"
)

// ReleaseLane takes an agent's slots away from the tasks that hold them and returns the
// tasks' ids. The tasks end as released (cancelled if that was requested); later reports of
// their executions are stale. Isolated executions lose their slots only if their
// cancellation was requested.
func (e *Engine) ReleaseLane(ctx context.Context, agent, by string) ([]string, error) {
	if err := e.checkLane(ctx, agent); err != nil {
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
		if s.Withheld {
			if _, err := e.FreeSlot(ctx, s); err != nil {
				return ids, err
			}
			e.announceRelease(ctx, s, by)
		} else {
			t, err := e.store.Task(ctx, s.TaskID)
			if err == nil && signalbox.Isolated(s.Slot) && !t.CancelRequested {
				continue
			}
			if err == nil {
				_, err = e.tryApply(ctx, &t, signalbox.Event{Kind: signalbox.EventRelease, Fence: s.Fence, By: by})
			}
			if err != nil {
				return ids, err
			}
		}
		ids = append(ids, s.TaskID)
	}
	if len(ids) == 0 { // no slot was held: tell the dispatcher to stop withholding offers
		e.announceRelease(ctx, signalbox.Slot{Agent: agent}, by)
	}
	return ids, nil
}

// announceRelease announces a release that changes no task, also to the director that
// dispatches to the agent, if there are several.
func (e *Engine) announceRelease(ctx context.Context, s signalbox.Slot, by string) {
	e.hub.publish(&Applied{Kind: signalbox.EventRelease, Task: signalbox.Task{ID: s.TaskID, Agent: s.Agent, Slot: s.Slot, Fence: s.Fence}, By: by})
	if e.following.Load() {
		e.note(context.WithoutCancel(ctx), signalbox.Entry{Kind: signalbox.EventRelease, Agent: s.Agent, Fence: s.Fence, By: by})
	}
}

// Cancel requests that a task stop. A pending task is cancelled at once, a dispatching one
// when the agent's reply comes; a working one becomes cancelling, and the dispatcher tells
// its agent. Cancelling twice is not an error.
//
// Errors: CodeNotFound; CodeAlreadyEnded, with the row.
func (e *Engine) Cancel(ctx context.Context, id, by string) (signalbox.Task, error) {
	return e.apply(ctx, id, nil, signalbox.Event{Kind: signalbox.EventCancel, By: by})
}

// ClearLane cancels all pending tasks in an agent's own queue and returns their number.
// Tasks that are running, or are claimed meanwhile, continue.
//
// Errors: CodeNotFound; CodeUnsupported for an executor.
func (e *Engine) ClearLane(ctx context.Context, agent, by string) (int, error) {
	if err := e.checkLane(ctx, agent); err != nil {
		return 0, err
	}
	n := 0
	for after := (store.Cursor{}); ; {
		page, err := e.store.Waiting(ctx, signalbox.AgentQueue(agent), after, batchSize)
		if err != nil || len(page) == 0 {
			return n, err
		}
		did, err := e.tryAll(ctx, page, signalbox.Event{Kind: signalbox.EventCancel, Waiting: true, By: by})
		if n += did; err != nil {
			return n, err
		}
		after = store.CursorOf(&page[len(page)-1])
	}
}

// checkLane refuses an unknown agent, and an executor.
func (e *Engine) checkLane(ctx context.Context, agent string) error {
	if err := signalbox.RefuseExecutor(agent); err != nil {
		return err
	}
	_, err := e.knownAgent(ctx, agent)
	return err
}
