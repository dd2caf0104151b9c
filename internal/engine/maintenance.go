package engine

import (
	"context"
	"time"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/internal/store"
)

// batchSize bounds the rows that one maintenance step handles, so that it does not block
// the store for long.
const batchSize = 500

// Wake makes due tasks ready. It returns their queues, and when the next task is due (zero:
// none). Observers get an Applied without a Kind for each.
func (e *Engine) Wake(ctx context.Context) (queues []string, next time.Time, err error) {
	ids, next, err := e.store.Wake(ctx, e.Now(), batchSize)
	if err != nil {
		return nil, next, err
	}
	woken, err := e.store.Tasks(ctx, ids)
	for i := range woken {
		queues = append(queues, woken[i].Queue)
		// Not an event of the task, but callers that wait for it must notice.
		e.hub.publish(&Applied{From: woken[i].State, Task: woken[i]})
	}
	return queues, next, err
}

// EndOverdue ends tasks that have waited longer than their wait_timeout.
func (e *Engine) EndOverdue(ctx context.Context) (int, error) {
	overdue, err := e.store.Overdue(ctx, e.Now(), batchSize)
	if err != nil {
		return 0, err
	}
	return e.tryAll(ctx, overdue, signalbox.Event{Kind: signalbox.EventWaitTimeout})
}

// Retention bounds how long and how many ended tasks are kept. 0 bytes: no limit; bytes are
// counted as in signalbox.Task.Kept.
type Retention struct {
	For        time.Duration
	Bytes      int64 // of all tasks: the oldest are pruned first, whoever owns them
	OwnerBytes int64 // of one owner's tasks; tasks without an owner count only towards Bytes
}

// Pruned is the result of one step of Prune.
type Pruned struct {
	Tasks  int              // pruned, for any reason
	Owners map[string]int64 // owners over OwnerBytes, with their excess before the step
	Over   int64            // excess over Bytes before the step
	More   bool             // there may be more to prune
}

// Prune deletes ended tasks beyond their retention, at most batchSize at a time. Tasks of
// owners over their limit are searched from the oldest on; the next call continues where
// this one stopped. It must not be called concurrently.
func (e *Engine) Prune(ctx context.Context, keep Retention) (Pruned, error) {
	kept, err := e.store.Kept(ctx)
	if err != nil {
		return Pruned{}, err
	}
	did, sum := Pruned{Owners: map[string]int64{}}, int64(0)
	for owner, bytes := range kept {
		sum += bytes
		if over := bytes - keep.OwnerBytes; keep.OwnerBytes > 0 && over > 0 && owner != "" {
			did.Owners[owner] = over
		}
	}
	if keep.Bytes > 0 {
		did.Over = max(0, sum-keep.Bytes)
	}
	old, err := e.store.Prune(ctx, store.Pruning{
		Ended: e.Now().Add(-keep.For), Bytes: did.Over, Usage: signalbox.DayOf(e.Now()) - signalbox.UsageDays, Limit: batchSize,
	})
	did.Tasks, did.More = old.Tasks, old.Next != store.EndedCursor{}
	if err != nil || len(did.Owners) == 0 || did.More {
		return did, err
	}
	theirs, err := e.store.Prune(ctx, store.Pruning{Owners: did.Owners, After: e.pruneCursor, Limit: batchSize})
	did.Tasks, did.More = did.Tasks+theirs.Tasks, theirs.Next != store.EndedCursor{}
	e.pruneCursor = theirs.Next
	return did, err
}
