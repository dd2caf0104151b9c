package push_test

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/signalbox-ai/signalbox"
	. "github.com/signalbox-ai/signalbox/internal/execution/push/agenttest"
	"github.com/signalbox-ai/signalbox/internal/store"
	"github.com/signalbox-ai/signalbox/internal/store/memory"
)

// counted counts rounds, each of which reads overdue tasks once, and reads of the queue counts.
type counted struct {
	store.Store
	rounds, counts atomic.Int64
}

func (s *counted) Overdue(ctx context.Context, now time.Time, limit int) ([]signalbox.Task, error) {
	s.rounds.Add(1)
	return s.Store.Overdue(ctx, now, limit)
}

func (s *counted) Counts(ctx context.Context) (store.Counts, error) {
	s.counts.Add(1)
	return s.Store.Counts(ctx)
}

// A round that finds nothing to do reads the queue counts once.
func TestRoundCountsQueuesOnce(t *testing.T) {
	t.Parallel()
	s := &counted{Store: memory.New(memory.Options{ID: "rig"})}
	h := newFixture(t, on(s))
	h.agent(Options{Name: "a"})
	h.start()
	h.untilUp("a")
	rounds, counts := s.rounds.Load(), s.counts.Load()
	h.await("ten rounds", func() bool { return s.rounds.Load() >= rounds+10 })
	h.stop()
	rounds, counts = s.rounds.Load()-rounds, s.counts.Load()-counts
	if counts > rounds+3 { // an event may also read them
		t.Errorf("%d rounds counted the queues %d times", rounds, counts)
	}
}
