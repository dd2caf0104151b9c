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
	woken, err := e.store.Tasks(ctx, ids)
	for i := range woken {
		queues = append(queues, woken[i].Queue)
		// No event of the task, but whoever waits for one must hear of it.
		e.hub.publish(&Applied{From: woken[i].State, Task: woken[i]})
	}
	return queues, next, err
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

// Keep bounds what is kept of ended tasks. A bound of 0 bytes is none; bytes are
// counted as signalbox.Task.Kept does.
type Keep struct {
	For        time.Duration
	Bytes      int64 // of all tasks: the oldest go first, whoever's
	OwnerBytes int64 // of the tasks of one owner; that of nobody in particular is bounded with all
}

// Pruned is what one step of Prune forgot.
type Pruned struct {
	Tasks  int              // for whatever reason
	Owners map[string]int64 // those with more than OwnerBytes, and by how much, before the step
	Over   int64            // by how much there was more than Bytes
	More   bool             // there may be more to forget
}

// Prune forgets ended tasks beyond what is to be kept, in a small step. Those of
// owners who have too much are sought from the oldest end on: the next step goes
// on where this one stopped.
func (e *Engine) Prune(ctx context.Context, keep Keep) (Pruned, error) {
	kept, err := e.store.Kept(ctx)
	if err != nil {
		return Pruned{}, err
	}
	var did Pruned
	sum := int64(0)
	for owner, bytes := range kept {
		sum += bytes
		if over := bytes - keep.OwnerBytes; keep.OwnerBytes > 0 && over > 0 && owner != "" {
			if did.Owners == nil {
				did.Owners = map[string]int64{}
			}
			did.Owners[owner] = over
		}
	}
	if keep.Bytes > 0 {
		did.Over = max(0, sum-keep.Bytes)
	}
	old, err := e.store.Prune(ctx, store.Pruning{Ended: e.Now().Add(-keep.For), Bytes: did.Over, Limit: batch})
	did.Tasks, did.More = old.Tasks, old.Next != store.EndedSpot{}
	if err != nil || len(did.Owners) == 0 || did.More {
		return did, err
	}
	theirs, err := e.store.Prune(ctx, store.Pruning{Owners: did.Owners, After: e.pruned, Limit: batch})
	did.Tasks, did.More = did.Tasks+theirs.Tasks, theirs.Next != store.EndedSpot{}
	e.pruned = theirs.Next
	return did, err
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
