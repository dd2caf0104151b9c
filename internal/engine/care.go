package engine

import (
	"context"
	"time"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/internal/store"
)

// batch bounds how much one round of care does, so that a round cannot hold
// up the store for long.
const batch = 500

// Wake makes due tasks ready and returns the queues in which they wait, and
// when the next task is due (zero: none). Observers hear of each task that was
// woken as an Applied without a Kind.
func (e *Engine) Wake(ctx context.Context) (queues []string, next time.Time, err error) {
	ids, next, err := e.store.Wake(ctx, e.Now(), batch)
	if err != nil {
		return nil, next, err
	}
	for _, id := range ids {
		t, err := e.store.Task(ctx, id)
		if err != nil {
			return queues, next, err
		}
		queues = append(queues, t.Queue)
		// No event of the task, but whoever waits for one must hear of it.
		e.hub.publish(Applied{From: t.State, Task: t})
	}
	return queues, next, nil
}

// EndOverdue ends tasks that have waited longer than they were allowed to.
func (e *Engine) EndOverdue(ctx context.Context) (int, error) {
	overdue, err := e.store.Overdue(ctx, e.Now(), batch)
	if err != nil {
		return 0, err
	}
	n := 0
	for _, t := range overdue {
		_, err := e.apply(ctx, t.ID, &t, signalbox.Event{Kind: signalbox.EventWaitTimeout})
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

// ResumeDue ends the pauses whose time is over.
func (e *Engine) ResumeDue(ctx context.Context) error {
	pauses, err := e.store.Pauses(ctx)
	if err != nil {
		return err
	}
	now := e.Now().UnixMilli()
	for _, p := range pauses {
		if p.UntilMS != 0 && p.UntilMS <= now {
			if err := e.Resume(ctx, p.Queue, "its own time limit"); err != nil {
				return err
			}
		}
	}
	return nil
}

// Strand deals with the tasks that wait for an agent because it holds their
// session, when that agent has been gone for the session grace: they end
// with a message that says what to do, or move to all agents where the task
// said session: prefer. Tasks that named the agent go on waiting.
func (e *Engine) Strand(ctx context.Context, agent string, gone time.Duration) error {
	waiting, err := e.waiting(ctx, signalbox.AgentQueue(agent))
	if err != nil {
		return err
	}
	for _, t := range waiting {
		ev := signalbox.Event{Kind: signalbox.EventMove, Queue: signalbox.QueueWork}
		switch t.SessionMode {
		case "":
			continue
		case signalbox.SessionRequire:
			ev = signalbox.Event{Kind: signalbox.EventUndeliverable, Message: stranded(t, agent, gone)}
		}
		_, err := e.apply(ctx, t.ID, &t, ev)
		switch signalbox.CodeOf(err) {
		case "", signalbox.CodeConflict, signalbox.CodeAlreadyEnded, signalbox.CodeNotFound:
		default:
			return err
		}
	}
	return nil
}

func stranded(t signalbox.Task, agent string, gone time.Duration) string {
	return signalbox.Errorf("", "session %s is held by agent %s, which has been gone for %s: start %s again and retry, or submit with session: prefer to go on elsewhere without the conversation",
		t.SessionID, agent, gone.Round(time.Second), agent).Message
}

// Prune forgets tasks that ended before the retention period and returns how
// many. It works in small steps.
func (e *Engine) Prune(ctx context.Context, retention time.Duration) (int, error) {
	return e.store.Prune(ctx, e.Now().Add(-retention), batch)
}

// waiting lists all pending tasks of a queue.
func (e *Engine) waiting(ctx context.Context, queue string) ([]signalbox.Task, error) {
	var all []signalbox.Task
	var after store.Cursor
	for {
		page, err := e.store.Waiting(ctx, queue, after, batch)
		if err != nil || len(page) == 0 {
			return all, err
		}
		all = append(all, page...)
		after = store.CursorOf(&page[len(page)-1])
	}
}
