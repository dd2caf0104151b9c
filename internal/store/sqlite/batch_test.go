package sqlite

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/internal/store"
)

// together puts verbs into one batch: it holds the writer until all of them
// wait.
func together(t *testing.T, s *Store, verbs ...func() error) []error {
	t.Helper()
	hold, held := make(chan struct{}), make(chan struct{})
	var once sync.Once // it is done again with the others of its batch where one of them fails late
	var all sync.WaitGroup
	all.Go(func() {
		err := s.do(context.Background(), 0, func(*writer) error { once.Do(func() { close(held) }); <-hold; return nil })
		if err != nil {
			t.Error(err)
		}
	})
	<-held
	errs := make([]error, len(verbs))
	for n, verb := range verbs {
		var answered atomic.Bool
		before := s.inbox.Len()
		all.Go(func() { errs[n] = verb(); answered.Store(true) })
		for s.inbox.Len() == before && !answered.Load() { // they wait in the order in which they are named
			runtime.Gosched()
		}
	}
	close(hold)
	all.Wait()
	return errs
}

// refusedLate is a verb that fails after it has written.
func refusedLate(s *Store, with error) func() error {
	return func() error {
		return s.do(context.Background(), 0, func(w *writer) error {
			sub := newSubmission()
			if _, err := w.submit(&sub, nil); err != nil {
				return err
			}
			return with
		})
	}
}

func submitting(s *Store) func() error {
	return func() error { _, err := s.Submit(context.Background(), newSubmission()); return err }
}

func TestVerbThatFailsLateLeavesNothingAndHarmsNobody(t *testing.T) {
	s := openTest(t, Options{})
	mustSubmit(t, s)
	refusal := signalbox.Errorf(signalbox.CodeConflict, "no")
	errs := together(t, s, submitting(s), refusedLate(s, refusal), submitting(s), refusedLate(s, store.ErrStale), submitting(s))
	for n, want := range []error{nil, refusal, nil, store.ErrStale, nil} {
		if errs[n] != want && !errors.Is(errs[n], want) {
			t.Errorf("verb %d: got %v, want %v", n, errs[n], want)
		}
	}
	if got := s.board.counts().Pending; got != 4 {
		t.Errorf("%d tasks wait, want 4", got)
	}
	exact(t, s)
	entries, err := s.Journal(context.Background(), 0, 100)
	if err != nil || len(entries) != 4 || entries[3].Seq != 4 {
		t.Errorf("journal %v (%v)", entries, err)
	}
	if last := mustSubmit(t, s); last.Seq != 5 {
		t.Errorf("the next task has number %d, want 5", last.Seq)
	}
}

func TestTooLargeAValueHarmsNobodyElse(t *testing.T) {
	s := openTest(t, Options{})
	s.writer.db.Limit(0, 1<<20) // SQLITE_LIMIT_LENGTH
	huge := func() error {
		sub := newSubmission()
		sub.Request.Prompt = string(bytes.Repeat([]byte("x"), 2<<20))
		_, err := s.Submit(context.Background(), sub)
		return err
	}
	errs := together(t, s, submitting(s), huge, submitting(s))
	if errs[0] != nil || errs[2] != nil || signalbox.CodeOf(errs[1]) != signalbox.CodeStoreFailed {
		t.Fatalf("got %v", errs)
	}
	exact(t, s)
}

func TestCallerWhoGoesBeforeTheWriterComesLeavesNothing(t *testing.T) {
	s := openTest(t, Options{})
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	left := make(chan struct{})
	errs := together(t, s, submitting(s), func() error {
		defer close(left)
		_, err := s.Submit(ctx, newSubmission())
		return err
	}, func() error { cancel(); <-left; return submitting(s)() })
	if errs[0] != nil || errs[2] != nil || !errors.Is(errs[1], context.Canceled) {
		t.Fatal(errs)
	}
	if got := s.board.counts().Pending; got != 2 {
		t.Errorf("%d tasks wait, want 2", got)
	}
	exact(t, s)
}

func TestCloseAnswersThoseWhoWait(t *testing.T) {
	s := openTest(t, Options{})
	errs := together(t, s, submitting(s), submitting(s), func() error {
		go s.Close()
		<-s.closing
		return submitting(s)()
	}, submitting(s))
	if errs[0] != nil || errs[1] != nil || signalbox.CodeOf(errs[2]) != signalbox.CodeUnavailable {
		t.Fatal(errs)
	}
}

// What the ledger keeps in memory must never part from the file, whatever
// verbs come together and fail together.
func TestLedgerIsExactAfterManyVerbs(t *testing.T) {
	s := openTest(t, Options{})
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	var all sync.WaitGroup
	for n := range 8 {
		r := rand.New(rand.NewPCG(seed, uint64(n)))
		all.Go(func() {
			for range 150 {
				someVerb(t, s, r, fmt.Sprint("agent-", n%4))
			}
		})
	}
	all.Wait()
	exact(t, s)
}

func someVerb(t *testing.T, s *Store, r *rand.Rand, agent string) {
	ctx := context.Background()
	switch r.IntN(8) {
	case 0, 1, 2:
		sub := newSubmission()
		sub.Task.SessionID = []string{"", "", "s1", "s2"}[r.IntN(4)]
		sub.Task.Limit, sub.Cap = []string{"work", "chat:a"}[r.IntN(2)], 40
		sub.FollowSession = true
		if r.IntN(3) == 0 {
			sub.Task.NotBefore = sub.Now.Add(time.Duration(r.IntN(20)-10) * time.Millisecond)
		}
		_, err := s.Submit(ctx, sub)
		if code := signalbox.CodeOf(err); code != "" && code != signalbox.CodeQueueFull {
			t.Error(err)
		}
	case 3, 4, 5:
		c := newClaim(agent)
		c.Slots = 2
		got, err := s.Claim(ctx, c)
		if err != nil || !got.Found {
			return
		}
		finishSomehow(t, s, r, got.Task)
	case 6:
		if _, _, err := s.Wake(ctx, clock(), 3); err != nil {
			t.Error(err)
		}
	case 7:
		_ = refusedLate(s, store.ErrStale)()
		if _, err := s.Prune(ctx, store.Pruning{Ended: clock().Add(-time.Millisecond), Limit: 5}); err != nil {
			t.Error(err)
		}
	}
}

func finishSomehow(t *testing.T, s *Store, r *rand.Rand, task signalbox.Task) {
	task, err := apply(s, task, signalbox.Event{Kind: signalbox.EventAccept, SessionID: []string{"", "s1"}[r.IntN(2)]})
	if err != nil {
		return
	}
	ev := []signalbox.Event{
		{Kind: signalbox.EventFinish, Reason: signalbox.ReasonCompleted, Result: &signalbox.Result{Output: "done"}},
		{Kind: signalbox.EventLost, Reason: signalbox.ReasonLost, Withhold: true},
		{Kind: signalbox.EventRelease}, {Kind: signalbox.EventCancel},
	}[r.IntN(4)]
	if _, err := apply(s, task, ev); err != nil && signalbox.CodeOf(err) == signalbox.CodeInternal && err != store.ErrStale {
		t.Error(err)
	}
	if _, err := s.FreeSlot(context.Background(), task.Agent, task.Slot, task.Fence); err != nil {
		t.Error(err)
	}
}

func TestErasedEnvironmentIsNotInTheFile(t *testing.T) {
	s := openTest(t, Options{})
	secret := bytes.Repeat([]byte("sealed-secret-bytes!"), 600) // more than a page
	for _, n := range []int{20, len(secret)} {
		sub := newSubmission()
		sub.Task.HasEnv, sub.Request.SealedEnv = true, secret[:n]
		if _, err := s.Submit(context.Background(), sub); err != nil {
			t.Fatal(err)
		}
	}
	checkpoint(t, s)
	if !inFile(t, s, secret[:20]) {
		t.Fatal("the environment of a waiting task is not in the file: the test proves nothing")
	}
	for range 2 {
		got, err := s.Claim(context.Background(), newClaim("a"))
		if err != nil || !got.Found || !bytes.HasPrefix(secret, got.Request.SealedEnv) {
			t.Fatal(got.Found, err)
		}
		if _, err := apply(s, got.Task, signalbox.Event{Kind: signalbox.EventFinish, Reason: signalbox.ReasonCompleted}); err != nil {
			t.Fatal(err)
		}
	}
	checkpoint(t, s)
	if inFile(t, s, secret[:20]) {
		t.Error("the environment of an ended task is still in the file")
	}
}

func checkpoint(t *testing.T, s *Store) {
	t.Helper()
	err := s.do(context.Background(), 0, func(w *writer) error {
		_, err := w.exec("PRAGMA wal_checkpoint(TRUNCATE)")
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

func inFile(t *testing.T, s *Store, what []byte) bool {
	t.Helper()
	b, err := os.ReadFile(s.opts.Path)
	if err != nil {
		t.Fatal(err)
	}
	return bytes.Contains(b, what)
}
