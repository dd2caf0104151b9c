package verbs_test

import (
	"testing"

	"github.com/signalbox-ai/signalbox/internal/store"
	"github.com/signalbox-ai/signalbox/internal/store/storetest"
	"github.com/signalbox-ai/signalbox/internal/store/verbs"
)

func TestContractWithoutMemory(t *testing.T) {
	storetest.Run(t, func(t *testing.T) store.Store { return newServer(t).open(t, verbs.Forgetful(verbs.Options{})) })
}

// A queue of which the set knows only the beginning is claimed in order, including tasks that are added in
// between.
func TestLongQueueIsClaimedInOrder(t *testing.T) {
	s := newServer(t).open(t, verbs.Forgetful(verbs.Options{}))
	var want []string
	for range 40 {
		want = append(want, mustSubmit(t, s).ID)
	}
	urgent := newSubmission()
	urgent.Task.Bias = 1 << 40
	if _, err := s.Submit(ctx, urgent); err != nil {
		t.Fatal(err)
	}
	for n, id := range append([]string{urgent.Task.ID}, want...) {
		got, err := s.Claim(ctx, newClaim("a", n+1))
		if err != nil || got.Task.ID != id {
			t.Fatalf("%d: claimed %s (%v), want %s", n, got.Task.ID, err, id)
		}
	}
}
