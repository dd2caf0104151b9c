package verbs_test

import (
	"context"
	"errors"
	"sync"
	"testing"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/internal/store/verbs"
)

// holdCommit opens a store of srv whose first commit waits for release; committing is closed when it is
// reached.
func holdCommit(t *testing.T, srv *server) (s *verbs.Shared, committing chan struct{}, release func()) {
	s = srv.open(t, verbs.Options{})
	mustSubmit(t, s) // loads the counters
	committing, held := make(chan struct{}), make(chan struct{})
	var once sync.Once
	srv.setFault(func(call string, _ *verbs.Delta) fault {
		if call == "commit" {
			once.Do(func() { close(committing); <-held })
		}
		return works
	})
	return s, committing, sync.OnceFunc(func() { close(held) })
}

// A caller that gives up before the writer takes its verb leaves nothing; later it gets the outcome.
func TestCallerLeavingEarlyLeavesNothing(t *testing.T) {
	srv := newServer(t)
	s, committing, release := holdCommit(t, srv)
	defer release()
	var all sync.WaitGroup
	late, leaveLate := context.WithCancel(ctx)
	all.Go(func() {
		if _, err := s.Submit(late, newSubmission()); err != nil {
			t.Errorf("the caller whose commit was under way: %v", err)
		}
	})
	<-committing
	leaveLate()
	early, leaveEarly := context.WithCancel(ctx)
	left := make(chan error, 1)
	go func() { _, err := s.Submit(early, newSubmission()); left <- err }()
	leaveEarly()
	if err := <-left; !errors.Is(err, context.Canceled) || signalbox.CodeOf(err) != signalbox.CodeStoreFailed {
		t.Errorf("the caller that gave up: %v", err)
	}
	release()
	all.Wait()
	if last := mustSubmit(t, s); last.Seq != 3 {
		t.Errorf("the next task has the number %d, want 3", last.Seq)
	}
	if n := pending(t, s); n != 3 {
		t.Errorf("%d tasks wait, want 3", n)
	}
}

// Close lets the commit in flight end and answers all callers: those of its batch that it is stored, later
// ones that the store is closed.
func TestCloseAnswersWaitingCallers(t *testing.T) {
	srv := newServer(t)
	s, committing, release := holdCommit(t, srv)
	defer release()
	errs := make(chan error, 8)
	submit := func() { _, err := s.Submit(ctx, newSubmission()); errs <- err }
	go submit()
	<-committing
	for range cap(errs) - 1 {
		go submit()
	}
	closed := make(chan error, 1)
	go func() { closed <- s.Close() }()
	release()
	if err := <-closed; err != nil {
		t.Fatal(err)
	}
	stored := 1 // by holdCommit
	for range cap(errs) {
		switch err := <-errs; {
		case err == nil:
			stored++
		case signalbox.CodeOf(err) != signalbox.CodeUnavailable:
			t.Errorf("a caller was told %v", err)
		}
	}
	if _, err := s.Submit(ctx, newSubmission()); signalbox.CodeOf(err) != signalbox.CodeUnavailable {
		t.Errorf("after Close: %v", err)
	}
	if n := pending(t, srv.open(t, verbs.Options{})); n != stored || stored < 2 {
		t.Errorf("%d tasks wait, and %d callers were told that theirs does", n, stored)
	}
}
