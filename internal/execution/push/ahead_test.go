package push_test

import (
	"context"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/internal/engine"
	. "github.com/signalbox-ai/signalbox/internal/execution/push/agenttest"
	"github.com/signalbox-ai/signalbox/internal/store"
	"github.com/signalbox-ai/signalbox/internal/store/memory"
)

// oneCommit is a store that commits a followed verb together with the claim after it: neither is answered
// before both are done.
type oneCommit struct {
	store.Store
	mu    sync.Mutex
	ahead *aheadOf // the verb that waits for a claim
	pairs int
}

type aheadOf struct{ called, done, claimed chan struct{} }

// follow runs a verb and, if it is followed, lets a claim come after it.
func (s *oneCommit) follow(ctx context.Context, verb func() error) error {
	queued := store.Follower(ctx)
	if queued == nil {
		return verb()
	}
	a := &aheadOf{make(chan struct{}), make(chan struct{}), make(chan struct{})}
	s.mu.Lock()
	s.ahead = a
	s.mu.Unlock()
	queued()
	select {
	case <-a.called:
	case <-time.After(10 * time.Second):
		return verb()
	}
	err := verb()
	close(a.done)
	<-a.claimed
	return err
}

func (s *oneCommit) Submit(ctx context.Context, sub store.Submission) (got store.Submitted, err error) {
	err = s.follow(ctx, func() (err error) { got, err = s.Store.Submit(ctx, sub); return err })
	return got, err
}

func (s *oneCommit) Apply(ctx context.Context, c signalbox.Change, now time.Time) (t signalbox.Task, err error) {
	err = s.follow(ctx, func() (err error) { t, err = s.Store.Apply(ctx, c, now); return err })
	return t, err
}

func (s *oneCommit) Claim(ctx context.Context, r store.ClaimRequest) (store.Claimed, error) {
	s.mu.Lock()
	a := s.ahead
	s.ahead = nil
	s.mu.Unlock()
	if a == nil {
		return s.Store.Claim(ctx, r)
	}
	close(a.called)
	<-a.done
	got, err := s.Store.Claim(ctx, r)
	s.mu.Lock()
	if got.Found {
		s.pairs++
	}
	s.mu.Unlock()
	close(a.claimed)
	return got, err
}

// A submit that finds an idle agent, and the end of a run with a task waiting, each share a commit with the
// claim, and observers get a task's submit before its claim.
func TestClaimSharesCommitOfSubmit(t *testing.T) {
	t.Parallel()
	s := &oneCommit{Store: memory.New(memory.Options{ID: "rig"})}
	h := newFixture(t, noTick, on(s))
	var mu sync.Mutex
	heard := map[string][]signalbox.EventKind{}
	h.engine.Observe(func(a *engine.Applied) {
		mu.Lock()
		defer mu.Unlock()
		heard[a.Task.ID] = append(heard[a.Task.ID], a.Kind)
	})
	a := h.agent(Options{Name: "a", Sessions: true})
	h.start()
	h.untilUp("a")
	first, second := h.submit(engine.NewTask{}), h.submit(engine.NewTask{})
	h.untilState(first, signalbox.Working)
	a.Finish(first, End{})
	h.untilState(second, signalbox.Working)
	a.Finish(second, End{})
	h.untilState(second, signalbox.Completed)
	s.mu.Lock()
	pairs := s.pairs
	s.mu.Unlock()
	if pairs != 2 {
		t.Errorf("%d claims shared the commit of what made them possible, want 2", pairs)
	}
	mu.Lock()
	defer mu.Unlock()
	for _, id := range []string{first, second} {
		if got := heard[id]; len(got) < 2 || !slices.Equal(got[:2], []signalbox.EventKind{signalbox.EventSubmit, signalbox.EventClaim}) {
			t.Errorf("observers heard %v of %s", got, id)
		}
	}
}
