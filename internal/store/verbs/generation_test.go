package verbs_test

import (
	"bytes"
	"log/slog"
	"strings"
	"sync"
	"testing"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/internal/store"
	"github.com/signalbox-ai/signalbox/internal/store/verbs"
)

// logged is a log that can be read while it is written.
type logged struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *logged) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *logged) count(word string) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return strings.Count(l.b.String(), word)
}

// A server that lost acknowledged data, like a Redis that syncs once a second, begins a new generation before
// anything else is stored: no number is given twice, and no earlier fence is accepted.
func TestIncidentServerLosesLastSecond(t *testing.T) {
	var log logged
	srv := newServer(t)
	s := srv.open(t, verbs.Options{Log: slog.New(slog.NewTextHandler(&log, nil))})
	task := mustSubmit(t, s)
	before := srv.save()
	lost := mustClaim(t, s, "a")
	if _, err := happen(s, lost, signalbox.Event{Kind: signalbox.EventAccept, TaskID: "t"}); err != nil {
		t.Fatal(err)
	}
	gone := mustSubmit(t, s)
	srv.restore(before)

	again := mustClaim(t, s, "b")
	if again.ID != task.ID || again.Fence < lost.Fence+1_000_000 {
		t.Errorf("%s is claimed with fence %d, after %d", again.ID, again.Fence, lost.Fence)
	}
	if s.Generation() != 2 || log.count("LOST WHAT IT HAD ACKNOWLEDGED") != 1 {
		t.Errorf("generation %d, %d words about it", s.Generation(), log.count("LOST"))
	}
	if _, err := happen(s, lost, signalbox.Event{Kind: signalbox.EventFinish, Reason: signalbox.ReasonCompleted}); err == nil {
		t.Error("a fence of before is accepted")
	}
	if next := mustSubmit(t, s); next.Seq <= gone.Seq || next.Place <= gone.Place {
		t.Errorf("numbers are given again: %d and %d, after %d and %d", next.Seq, next.Place, gone.Seq, gone.Place)
	}
	entries, err := s.Journal(ctx, 0, 10)
	if err != nil || len(entries) != 3 || entries[1].Seq < 1_000_000 {
		t.Errorf("the journal has %+v (%v)", entries, err)
	}
}

// A loss is detected even if others wrote since, so that the moment is beyond the known one.
func TestLossIsDetectedAfterOtherWrites(t *testing.T) {
	srv := newServer(t)
	a, b := srv.open(t, verbs.Options{}), srv.open(t, verbs.Options{})
	mustSubmit(t, a)
	mustSubmit(t, b)
	before := srv.save()
	lost := mustClaim(t, a, "a")
	srv.restore(before)
	for range 10 {
		mustSubmit(t, b)
	}
	if b.Generation() != 1 {
		t.Fatalf("b knows of no loss, and says generation %d", b.Generation())
	}
	again := mustClaim(t, a, "a")
	if a.Generation() != 2 || again.Fence <= lost.Fence {
		t.Errorf("generation %d, fence %d after %d", a.Generation(), again.Fence, lost.Fence)
	}
	mustSubmit(t, b)
	if b.Generation() != 2 {
		t.Errorf("b says generation %d", b.Generation())
	}
}

// If several processes detect a loss, each begins a generation only if it knows of more than the previous
// one.
func TestLossIsDetectedByAllProcesses(t *testing.T) {
	srv := newServer(t)
	a, b := srv.open(t, verbs.Options{}), srv.open(t, verbs.Options{})
	before := srv.save()
	first := mustClaimOf(t, a, mustSubmit(t, a))
	second := mustClaimOf(t, b, mustSubmit(t, b))
	srv.restore(before)
	fence := int64(0)
	for range 3 {
		for _, s := range []*verbs.Shared{a, b} {
			fence = mustClaimOf(t, s, mustSubmit(t, s)).Fence
		}
	}
	if a.Generation() != 2 || b.Generation() != 2 || fence <= max(first.Fence, second.Fence) {
		t.Errorf("generations %d and %d, fence %d", a.Generation(), b.Generation(), fence)
	}
}

func mustClaimOf(t *testing.T, s *verbs.Shared, task signalbox.Task) signalbox.Task {
	t.Helper()
	got, err := s.Claim(ctx, newClaim("a", 100))
	if err != nil || got.Task.ID != task.ID {
		t.Fatalf("claimed %+v (%v)", got, err)
	}
	return got.Task
}

// If the server lost data that a process only read, a new generation begins as well; but it is not reported
// as acknowledged.
func TestLossOfOnlyReadStateIsNotReported(t *testing.T) {
	var log logged
	srv := newServer(t)
	a := srv.open(t, verbs.Options{})
	b := srv.open(t, verbs.Options{Log: slog.New(slog.NewTextHandler(&log, nil))})
	mustSubmit(t, b)
	before := srv.save()
	gone := mustSubmit(t, a)
	c := newClaim("b", 1)
	c.Queues = []string{"nothing"}
	if got, err := b.Claim(ctx, c); err != nil || got.Found {
		t.Fatalf("claimed %+v (%v)", got, err)
	}
	srv.restore(before)
	if next := mustSubmit(t, b); next.Seq <= gone.Seq {
		t.Errorf("number %d is given again, as %d", gone.Seq, next.Seq)
	}
	if b.Generation() != 2 || log.count("LOST WHAT IT HAD ACKNOWLEDGED") != 0 || log.count("LOST WHAT IT HAD SHOWN") != 1 {
		t.Errorf("generation %d; the log: %s", b.Generation(), log.b.String())
	}
}

// A server that lost everything is a loss, too.
func TestEmptiedServerIsALoss(t *testing.T) {
	srv := newServer(t)
	empty := srv.save()
	s := srv.open(t, verbs.Options{})
	mustSubmit(t, s)
	srv.restore(empty)
	if got, err := s.Claim(ctx, newClaim("a", 1)); err != nil || got.Found {
		t.Fatalf("claimed %+v (%v)", got, err)
	}
	if s.Generation() != 2 {
		t.Errorf("generation %d", s.Generation())
	}
}

// While a new generation cannot be begun nothing is acknowledged.
func TestNothingIsAcknowledgedBeforeNewGeneration(t *testing.T) {
	srv := newServer(t)
	s := srv.open(t, verbs.Options{})
	before := srv.save()
	mustSubmit(t, s)
	srv.restore(before)
	var numbers []int64
	var mu sync.Mutex
	failed := 0
	srv.setFault(func(call string, d *verbs.Delta) fault {
		if call != "commit" {
			return works
		}
		mu.Lock()
		defer mu.Unlock()
		if d.To.Generation == 2 && d.From.Generation < 2 && failed < 3 {
			failed++
			return []fault{away, unknownLost, unknownStored}[failed-1]
		}
		numbers = append(numbers, d.To.Generation)
		return works
	})
	mustSubmit(t, s)
	mu.Lock()
	defer mu.Unlock()
	for _, n := range numbers[1:] {
		if n != 2 {
			t.Errorf("a batch was stored in generation %d", n)
		}
	}
	if s.Generation() != 2 || failed != 3 {
		t.Errorf("generation %d after %d faults", s.Generation(), failed)
	}
}

// A process's cached requests of lost tasks are not used for new tasks that got their numbers, even if
// another process detected the loss first.
func TestIncidentNewTaskHasNoPromptOfLostTask(t *testing.T) {
	srv := newServer(t)
	a, b, c := srv.open(t, verbs.Options{}), srv.open(t, verbs.Options{}), srv.open(t, verbs.Options{})
	before := srv.save()
	mustSubmit(t, a)
	lost := newSubmission()
	lost.Request.Prompt = "what was lost"
	if _, err := b.Submit(ctx, lost); err != nil {
		t.Fatal(err)
	}
	srv.restore(before)
	for range 2 {
		mustSubmit(t, c) // it does not know the given numbers, and gives them again
	}
	mustSubmit(t, a)
	for range 3 {
		got, err := b.Claim(ctx, newClaim("a", 100))
		if err != nil || !got.Found || got.Request.Prompt != "do it" {
			t.Errorf("task %d is to %q (%v)", got.Task.Seq, got.Request.Prompt, err)
		}
	}
	if a.Generation() != 2 || b.Generation() != 2 {
		t.Errorf("generations %d and %d", a.Generation(), b.Generation())
	}
}

var _ store.Shared = (*verbs.Shared)(nil)
