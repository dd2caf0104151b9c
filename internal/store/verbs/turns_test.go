package verbs_test

import (
	"context"
	"sync/atomic"
	"testing"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/internal/store"
	"github.com/signalbox-ai/signalbox/internal/store/verbs"
)

// counting counts the tasks of sessions that a backend loads.
type counting struct {
	verbs.Backend
	tasks *atomic.Int64
}

func (c counting) Load(ctx context.Context, w *verbs.Want) (*verbs.Loaded, error) {
	l, err := c.Backend.Load(ctx, w)
	if err == nil {
		for _, turn := range l.Turns {
			c.tasks.Add(int64(len(turn)))
		}
		for i := range l.Heads {
			c.tasks.Add(int64(len(l.Heads[i].Tasks)))
		}
	}
	return l, err
}

// The turns of a session run in order, one at a time, without loading all waiting ones for each.
func TestLongSessionIsNotLoadedPerTurn(t *testing.T) {
	const waiting, ran = 2000, 150
	srv := newServer(t)
	var loaded atomic.Int64
	open := func() store.Store {
		s, err := verbs.New(ctx, counting{srv.connect(), &loaded}, verbs.Options{})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = s.Close() })
		return s
	}
	s := open()
	submit := func() {
		sub := newSubmission()
		sub.Task.SessionID = "talk"
		if _, err := s.Submit(ctx, sub); err != nil {
			t.Fatal(err)
		}
	}
	for range waiting {
		submit()
	}
	s = open() // it knows nothing yet
	for n := range ran {
		submit()
		got, err := s.Claim(ctx, newClaim("a", 1))
		if err != nil || !got.Found || got.Task.Seq != int64(n+1) {
			t.Fatalf("turn %d: claimed %v, task %d (%v)", n+1, got.Found, got.Task.Seq, err)
		}
		if other, err := s.Claim(ctx, newClaim("b", 1)); err != nil || other.Found {
			t.Fatalf("two turns at once: %v (%v)", other.Found, err)
		}
		finish(t, s, got.Task)
	}
	if n := loaded.Load(); n > 4*ran {
		t.Errorf("%d tasks of the session were loaded for %d turns", n, ran)
	}
	counts, err := s.Counts(ctx)
	if err != nil || counts.Pending != waiting || counts.InFlight[signalbox.Dispatching] != 0 {
		t.Errorf("%+v (%v)", counts, err)
	}
}
