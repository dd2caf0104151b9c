package engine

import (
	"context"
	"sync"

	"github.com/signalbox-ai/signalbox/internal/store"
)

// earlyWake lets a claim share the commit of its task's submit: an agent that may take the
// task is woken when the submit is queued in the store, not only when it is stored. An idle
// agent then gets its task one commit earlier.
type earlyWake struct {
	takers func(queue string) (wake func()) // see SetEarlyWake

	mu          sync.Mutex
	unpublished map[string]chan struct{} // submits by task id; closed when published
}

// SetEarlyWake sets a function that returns how to wake an agent that could take a task of
// queue at once; nil if there is none. wake must not block. Call it before the engine is
// used.
func (e *Engine) SetEarlyWake(takers func(queue string) (wake func())) { e.earlyWake.takers = takers }

// begin returns the context for the submit of a task. published must be called when
// observers have been notified of it, or will not be.
func (a *earlyWake) begin(ctx context.Context, id, queue string) (submit context.Context, published func()) {
	var wake func()
	if a.takers != nil {
		wake = a.takers(queue)
	}
	if wake == nil {
		return ctx, func() {}
	}
	done := make(chan struct{})
	a.mu.Lock()
	defer a.mu.Unlock()
	a.unpublished[id] = done
	return store.Followed(ctx, wake), sync.OnceFunc(func() {
		a.mu.Lock()
		delete(a.unpublished, id)
		a.mu.Unlock()
		close(done)
	})
}

// waitPublished waits until observers have been notified of the submit of a claimed task:
// they see a task's changes in order.
func (a *earlyWake) waitPublished(id string) {
	a.mu.Lock()
	done := a.unpublished[id]
	a.mu.Unlock()
	if done != nil {
		<-done
	}
}
