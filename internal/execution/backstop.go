package execution

import (
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/internal/engine"
	"github.com/signalbox-ai/signalbox/internal/store"
)

// Backstop counts the waiting tasks once a tick, for all registries that share it, so that
// they find tasks that no event announced.
type Backstop struct {
	mu         sync.Mutex // held during a check
	last       Every
	registries []func(context.Context, store.Counts)
}

func (s *Backstop) add(counted func(context.Context, store.Counts)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.registries = append(s.registries, counted)
}

func (s *Backstop) check(ctx context.Context, e *engine.Engine, now time.Time, every time.Duration) error {
	if !s.mu.TryLock() {
		return nil // another transport's round is checking, and may wait for the store
	}
	defer s.mu.Unlock()
	if !s.last.Due(now, every) {
		return nil
	}
	counts, err := e.Read().Counts(ctx)
	if err != nil {
		return err
	}
	for _, counted := range s.registries {
		counted(ctx, counts)
	}
	return nil
}

// Backstop checks, at most once a tick, for tasks that no event announced, and for runs over
// their budget.
func (b *Registry[A, R]) Backstop(ctx context.Context) {
	b.Maintenance.LogError(ctx, "runs over their budget not stopped", b.stopOverBudget(ctx))
	b.Maintenance.LogError(ctx, "waiting tasks not counted", b.opts.Backstop.check(ctx, b.Engine, b.opts.Monotonic(), b.opts.Tick))
}

// WakeForWaiting wakes an agent for every queue with waiting tasks. It reads nothing while
// no agent would claim.
func (b *Registry[A, R]) WakeForWaiting(ctx context.Context) error {
	b.Mu.Lock()
	idle := !slices.ContainsFunc(b.Order, func(a A) bool { return a.ClaimsPerWake() > 0 })
	b.Mu.Unlock()
	if idle {
		return nil
	}
	counts, err := b.Engine.Read().Counts(ctx)
	if err == nil {
		b.kickQueues(counts)
	}
	return err
}

func (b *Registry[A, R]) kickQueues(counts store.Counts) {
	b.Mu.Lock()
	defer b.Mu.Unlock()
	b.clearDrained() // another director may have resumed a queue
	b.kickAll(slices.Sorted(maps.Keys(counts.Queues)))
}

// resolveStranded handles the session tasks of agents that have waiting tasks and have been
// gone for the session grace.
func (b *Registry[A, R]) resolveStranded(ctx context.Context, counts store.Counts) {
	gone, unknown := map[string]time.Duration{}, map[string]bool{}
	now := b.opts.Monotonic()
	b.Mu.Lock()
	for queue := range counts.Queues {
		name, own := signalbox.QueueAgent(queue)
		if !own {
			continue
		}
		away := time.Duration(0)
		if a, known := b.Lanes[name]; known {
			away = a.Base().Presence.Away(now)
		} else if b.UnknownAway != nil {
			away, unknown[name] = b.UnknownAway(name, now), true
		}
		if away >= b.opts.SessionGrace {
			gone[name] = away
		}
	}
	b.Mu.Unlock()
	for _, name := range slices.Sorted(maps.Keys(gone)) {
		if !unknown[name] && !b.Holds(name) {
			continue
		}
		if err := b.Engine.ResolveStranded(ctx, name, gone[name]); err != nil && ctx.Err() == nil {
			b.Log.Error("session tasks of a disconnected agent not resolved", "agent", name, "error", err)
		}
	}
}
