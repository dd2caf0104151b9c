package storetest

import (
	"time"

	"pgregory.net/rapid"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/internal/store"
)

// restore stores a task as another store had it: one that waits, or has ended.
func (p *pair) restore(t *rapid.T) {
	s := p.anySubmission(t)
	r := store.Restored{Task: s.Task, Request: s.Request, Now: p.now}
	r.Task.EnqueuedAt = p.now.Add(-pick(t, "waited", 0, time.Second, time.Hour))
	if rapid.Bool().Draw(t, "ended") {
		r.Task.State, r.Task.Reason, r.Task.Message, r.Task.HasEnv = signalbox.Completed, signalbox.ReasonCompleted, "done", false
		r.Task.Agent, r.Task.Fence = "a", pick[int64](t, "fence", 1, 99)
		r.Task.EndedAt = p.now.Add(-pick(t, "ago", 0, time.Minute))
		r.Task.StartedAt = r.Task.EndedAt.Add(-time.Second)
		r.Request.SealedEnv = nil
		r.Result = &signalbox.Result{Output: "out"}
	}
	_, _ = both(t, p, "Restore", func(s store.Store) (signalbox.Task, error) { return s.Restore(p.ctx, r) })
}
