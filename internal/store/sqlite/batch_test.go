package sqlite

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/internal/store"
)

func submitting(s *Store) func() error {
	return func() error { _, err := s.Submit(context.Background(), newSubmission()); return err }
}

func TestTooLargeValueFailsOnlyItsVerb(t *testing.T) {
	s := openTest(t, Options{CommitDelay: 2 * time.Millisecond}) // so that they share a batch
	s.backend.writer.db.Limit(0, 1<<20)                          // SQLITE_LIMIT_LENGTH
	huge := func() error {
		sub := newSubmission()
		sub.Request.Prompt = string(bytes.Repeat([]byte("x"), 2<<20))
		_, err := s.Submit(context.Background(), sub)
		return err
	}
	var all sync.WaitGroup
	for n := range 60 {
		all.Go(func() {
			if n%20 != 7 {
				if err := submitting(s)(); err != nil {
					t.Error(err)
				}
			} else if err := huge(); signalbox.CodeOf(err) != signalbox.CodeStoreFailed || !strings.Contains(err.Error(), "too large") {
				t.Errorf("a value that is too large: %v", err)
			}
		})
	}
	all.Wait()
	if got := waiting(t, s); got != 57 {
		t.Errorf("%d tasks wait, want 57", got)
	}
	exact(t, s)
}

// The live totals must always match the file, whichever verbs share a batch and fail.
func TestLiveTotalsAreExactAfterManyVerbs(t *testing.T) {
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
	runSQL(t, s, "PRAGMA wal_checkpoint(TRUNCATE)")
}

func inFile(t *testing.T, s *Store, what []byte) bool {
	t.Helper()
	b, err := os.ReadFile(s.backend.opts.Path)
	if err != nil {
		t.Fatal(err)
	}
	return bytes.Contains(b, what)
}
