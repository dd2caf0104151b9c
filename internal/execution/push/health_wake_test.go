package push_test

import (
	"context"
	"sync/atomic"
	"testing"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/internal/engine"
	. "github.com/signalbox-ai/signalbox/internal/execution/push/agenttest"
	"github.com/signalbox-ai/signalbox/internal/store"
	"github.com/signalbox-ai/signalbox/internal/store/memory"
)

// slowClaim delays the answer of one claim that finds nothing.
type slowClaim struct {
	store.Store
	hold           atomic.Bool
	looked, answer chan struct{}
}

func (s *slowClaim) Claim(ctx context.Context, c store.ClaimRequest) (store.Claimed, error) {
	got, err := s.Store.Claim(ctx, c)
	if err == nil && !got.Found && s.hold.CompareAndSwap(true, false) {
		close(s.looked)
		<-s.answer
	}
	return got, err
}

// A task that is submitted while an agent claims its probe after a pause is taken without a tick.
func TestTaskSubmittedDuringProbeIsTaken(t *testing.T) {
	t.Parallel()
	s := &slowClaim{Store: memory.New(memory.Options{ID: "rig"}), looked: make(chan struct{}), answer: make(chan struct{})}
	h := newFixture(t, noTick, on(s))
	a := h.agent(Options{Auto: true})
	a.Script(Offer, Say(507, nil))
	h.start()
	h.untilUp("fake")
	first := h.submit(engine.NewTask{})
	h.await("the agent gets a pause", func() bool { return h.live("fake").BackedOff })
	s.hold.Store(true)
	h.cancel(first)
	<-s.looked
	id := h.submit(engine.NewTask{})
	close(s.answer)
	h.ends(id, signalbox.ReasonCompleted)
}
