package engine

import (
	"context"
	"sync"

	"github.com/signalbox-ai/signalbox/internal/store"
)

// ahead lets a claim share the commit of the submit that it is for: whoever may
// take a task is woken when the submit stands in the store's line, not only when
// it is stored. Where that works, an idle agent has its task one commit earlier.
type ahead struct {
	look func(queue string) (wake func()) // see SetAhead

	mu        sync.Mutex
	unsettled map[string]chan struct{} // submits by task id; closed when observers have heard of one
}

// SetAhead tells the engine who knows whether a task that is about to be stored
// could be taken at once, and who is to be woken for it then; nil for nobody. wake
// must not wait. Call it before the engine is used by others.
func (e *Engine) SetAhead(look func(queue string) (wake func())) { e.ahead.look = look }

// begin returns the context for the submit of a task. told must be called when
// observers have heard of it, or will not.
func (a *ahead) begin(ctx context.Context, id, queue string) (submit context.Context, told func()) {
	var wake func()
	if a.look != nil {
		wake = a.look(queue)
	}
	if wake == nil {
		return ctx, func() {}
	}
	done := make(chan struct{})
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.unsettled == nil {
		a.unsettled = map[string]chan struct{}{}
	}
	a.unsettled[id] = done
	return store.Followed(ctx, wake), sync.OnceFunc(func() {
		a.mu.Lock()
		delete(a.unsettled, id)
		a.mu.Unlock()
		close(done)
	})
}

// wait returns when observers have heard of the submit of a task that was claimed:
// they hear of a task's changes in their order.
func (a *ahead) wait(id string) {
	a.mu.Lock()
	done := a.unsettled[id]
	a.mu.Unlock()
	if done != nil {
		<-done
	}
}
