package verbs_test

import (
	"testing"
	"time"

	"github.com/signalbox-ai/signalbox/internal/store"
	"github.com/signalbox-ai/signalbox/internal/store/verbs"
)

// The position of a task that is last costs nothing; with mixed priorities it is not guessed.
func TestSubmitReturnsQueuePosition(t *testing.T) {
	srv := newServer(t)
	a, b := srv.open(t, verbs.Options{}), srv.open(t, verbs.Options{})
	submit := func(s *verbs.Shared, bias time.Duration) store.Submitted {
		t.Helper()
		sub := newSubmission()
		sub.Task.Bias = bias
		got, err := s.Submit(ctx, sub)
		if err != nil {
			t.Fatal(err)
		}
		return got
	}
	for n := range 4 {
		s := []*verbs.Shared{a, b}[n%2]
		if got := submit(s, 0); got.Position != (store.Position{N: n + 1}) {
			t.Errorf("%d: the place is %+v", n, got.Position)
		}
	}
	urgent := submit(a, time.Minute)
	if urgent.Position.N != 0 || submit(b, 0).Position.N != 0 || submit(a, 0).Position.N != 0 {
		t.Error("a place is said though a priority mixes the order")
	}
	if got, err := b.Claim(ctx, newClaim("a", 1)); err != nil || got.Task.ID != urgent.Task.ID {
		t.Fatalf("claimed %+v (%v)", got, err)
	}
	if got := submit(a, 0); got.Position != (store.Position{N: 7}) {
		t.Errorf("the place is %+v", got.Position)
	}
}
