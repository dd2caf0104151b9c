package verbs_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/internal/store/verbs"
)

const patient = 10 * time.Second

// After a lost answer the outcome is queried: a stored batch is not stored again, any other is.
func TestLostAnswerIsQueried(t *testing.T) {
	for name, list := range map[string][]fault{
		"stored": {unknownStored}, "lost": {unknownLost}, "both": {unknownLost, unknownStored}, "again and again": {unknownLost, unknownLost, unknownLost},
	} {
		t.Run(name, func(t *testing.T) {
			srv := newServer(t)
			s := srv.open(t, verbs.Options{})
			srv.faults("commit", list...)
			task := mustSubmit(t, s)
			if n := pending(t, s); n != 1 {
				t.Fatalf("%d tasks wait, want 1", n)
			}
			finish(t, s, mustClaim(t, s, "a"))
			entries, err := s.Journal(ctx, 0, 10)
			if err != nil || len(entries) != 3 || entries[0].QueueID != task.ID {
				t.Fatalf("the journal has %+v (%v)", entries, err)
			}
		})
	}
}

// While the server cannot tell the outcome of a batch it is queried again.
func TestLostAnswerIsQueriedUntilServerReturns(t *testing.T) {
	srv := newServer(t)
	s := srv.open(t, verbs.Options{})
	unanswered := 3
	var mu sync.Mutex
	srv.setFault(func(call string, _ *verbs.Delta) fault {
		mu.Lock()
		defer mu.Unlock()
		switch {
		case unanswered == 3 && call == "commit":
			unanswered--
			return unknownStored
		case unanswered > 0 && unanswered < 3:
			unanswered--
			return away
		}
		return works
	})
	mustSubmit(t, s)
	if n := pending(t, s); n != 1 {
		t.Fatalf("%d tasks wait, want 1", n)
	}
}

// A caller that does not wait for the outcome is told that it is unknown.
func TestCancelledCallerGetsUnknownOutcome(t *testing.T) {
	srv := newServer(t)
	s := srv.open(t, verbs.Options{})
	asked := make(chan struct{}, 100)
	srv.setFault(func(call string, _ *verbs.Delta) fault {
		switch call {
		case "commit":
			return unknownStored
		case "committed":
			asked <- struct{}{}
			return away
		}
		return works
	})
	short, cancel := context.WithCancel(ctx)
	sub := newSubmission()
	sub.Task.IdempotencyKey = "k"
	answer := make(chan error, 1)
	go func() {
		_, err := s.Submit(short, sub)
		answer <- err
	}()
	<-asked
	cancel()
	select {
	case err := <-answer:
		wantCode(t, err, signalbox.CodeStoreFailed)
		if !errors.Is(err, context.Canceled) || !strings.Contains(err.Error(), "idempotency key") {
			t.Errorf("got %v", err)
		}
	case <-time.After(patient):
		t.Fatal("no answer though the caller gave up")
	}
	srv.setFault(nil)
	if got, err := s.Submit(ctx, sub); err != nil || !got.Replayed {
		t.Fatalf("the same request again: %+v (%v)", got, err)
	}
}

// If the server stays away, callers are told so in time; the outcome of the batch shows later, and nothing is
// done twice.
func TestLostAnswerStaysUnknown(t *testing.T) {
	srv := newServer(t)
	s := srv.open(t, verbs.Options{Patience: 50 * time.Millisecond})
	mustSubmit(t, s)
	for _, outcome := range []fault{unknownStored, unknownLost} {
		srv.setFault(func(call string, _ *verbs.Delta) fault {
			switch call {
			case "commit":
				return outcome
			case "committed":
				return away
			}
			return works
		})
		before := pending(t, s)
		_, err := s.Submit(ctx, newSubmission())
		wantCode(t, err, signalbox.CodeStoreFailed)
		srv.setFault(nil)
		mustSubmit(t, s)
		want := before + 1
		if outcome == unknownStored {
			want++
		}
		if n := pending(t, s); n != want {
			t.Errorf("%d tasks wait, want %d", n, want)
		}
	}
	if s.Generation() != 1 {
		t.Error("an answer that was lost is no loss of the server")
	}
}

// A server that cannot be reached is waited for; when it is back everything continues.
func TestUnreachableServerIsWaitedFor(t *testing.T) {
	srv := newServer(t)
	s := srv.open(t, verbs.Options{})
	mustSubmit(t, s)
	srv.faults("commit", away, away)
	mustSubmit(t, s)
	srv.faults("load", away, away)
	mustClaim(t, s, "a")
	srv.faults("read", away, away)
	if n := pending(t, s); n != 1 {
		t.Errorf("%d tasks wait, want 1", n)
	}
}

// It is not waited for indefinitely, nor for callers that gave up.
func TestServerStaysUnreachable(t *testing.T) {
	srv := newServer(t)
	s := srv.open(t, verbs.Options{Patience: 50 * time.Millisecond})
	mustSubmit(t, s)
	for _, f := range []fault{away, hangs} {
		srv.setFault(func(string, *verbs.Delta) fault { return f })
		_, err := s.Submit(ctx, newSubmission())
		if code := signalbox.CodeOf(err); code != signalbox.CodeUnavailable && code != signalbox.CodeStoreFailed {
			t.Errorf("a verb: %v", err)
		}
		_, err = s.Counts(ctx)
		wantCode(t, err, signalbox.CodeUnavailable)
		gone, cancel := context.WithTimeout(ctx, time.Millisecond)
		_, err = s.Counts(gone)
		cancel()
		wantCode(t, err, signalbox.CodeStoreFailed)
	}
	srv.setFault(nil)
	mustSubmit(t, s)
	if n := pending(t, s); n != 2 {
		t.Errorf("%d tasks wait, want 2", n)
	}
}

// If the server refuses a write, each caller of the batch gets the error at once.
func TestRefusedBatchLeavesNothing(t *testing.T) {
	srv := newServer(t)
	s := srv.open(t, verbs.Options{})
	mustSubmit(t, s)
	srv.faults("commit", refuses)
	_, err := s.Submit(ctx, newSubmission())
	wantCode(t, err, signalbox.CodeStoreFailed)
	if !strings.Contains(err.Error(), "the disk is full") {
		t.Errorf("got %v", err)
	}
	task := mustSubmit(t, s)
	if task.Seq != 2 || task.Place != 2 || pending(t, s) != 2 {
		t.Errorf("the next task is %+v", task)
	}
}

// A batch that is overtaken at each attempt fails in the end.
func TestRepeatedlyOvertakenBatchFails(t *testing.T) {
	srv := newServer(t)
	s := srv.open(t, verbs.Options{Patience: 20 * time.Millisecond})
	srv.setFault(func(call string, _ *verbs.Delta) fault {
		if call == "commit" {
			return moved
		}
		return works
	})
	_, err := s.Submit(ctx, newSubmission())
	wantCode(t, err, signalbox.CodeStoreFailed)
}
