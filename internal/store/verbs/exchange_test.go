package verbs_test

import (
	"testing"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/internal/store/verbs"
)

// A process that is alone reads nothing that it knows: a batch costs one exchange.
func TestLoneBatchIsOneExchange(t *testing.T) {
	srv := newServer(t)
	s := srv.open(t, verbs.Options{})
	for range 2 { // the first round loads
		mustSubmit(t, s)
		finish(t, s, mustClaim(t, s, "a"))
	}
	srv.called("")
	for range 10 {
		mustSubmit(t, s)
		task, err := happen(s, mustClaim(t, s, "a"), signalbox.Event{Kind: signalbox.EventAccept, TaskID: "t"})
		if err != nil {
			t.Fatal(err)
		}
		finish(t, s, task)
	}
	if n := srv.called("load"); n != 0 {
		t.Errorf("%d loads for what was known", n)
	}
}

// With other writers, a batch takes the lock, and none is refused for ever; when the others stop, it no
// longer takes the lock.
func TestSharedBatchTakesLock(t *testing.T) {
	srv := newServer(t)
	a, b := srv.open(t, verbs.Options{}), srv.open(t, verbs.Options{})
	mustSubmit(t, a)
	for range 5 {
		mustSubmit(t, b)
		mustSubmit(t, a)
	}
	srv.called("")
	mustSubmit(t, b)
	if n := srv.called("lock"); n != 1 {
		t.Errorf("%d locks for a batch while others write", n)
	}
	for range 20 {
		mustSubmit(t, b)
	}
	srv.called("")
	mustSubmit(t, b)
	if n := srv.called("lock"); n != 0 {
		t.Errorf("%d locks although no other process writes", n)
	}
}

// A result without a write shows the state of the server, not what the process knew.
func TestReadsAreNotStale(t *testing.T) {
	srv := newServer(t)
	a, b := srv.open(t, verbs.Options{}), srv.open(t, verbs.Options{})
	if got, err := b.Claim(ctx, newClaim("b", 1)); err != nil || got.Found {
		t.Fatalf("claimed %v (%v)", got.Found, err)
	}
	for n := range 3 {
		task := mustSubmit(t, a)
		got, err := b.Claim(ctx, newClaim("b", n+1))
		if err != nil || !got.Found || got.Task.ID != task.ID || got.Request.Prompt != "do it" {
			t.Fatalf("%d: claimed %+v (%v), want %s", n, got, err, task.ID)
		}
	}
	if got, err := a.Claim(ctx, newClaim("b", 3)); err != nil || got.Found {
		t.Fatalf("claimed %v (%v) for an agent without a free slot", got.Found, err)
	}
}

// An id or a key stored by another process is found, even if this one assumes that it is new.
func TestIDsAndKeysOfOthersAreSeen(t *testing.T) {
	srv := newServer(t)
	a, b := srv.open(t, verbs.Options{}), srv.open(t, verbs.Options{})
	mustSubmit(t, a)
	mustSubmit(t, b)
	first := newSubmission()
	first.Task.IdempotencyKey, first.Task.IdempotencyHash = "k", "h"
	stored, err := a.Submit(ctx, first)
	if err != nil {
		t.Fatal(err)
	}
	again := newSubmission()
	again.Task.IdempotencyKey, again.Task.IdempotencyHash = "k", "h"
	got, err := b.Submit(ctx, again)
	if err != nil || !got.Replayed || got.Task.ID != stored.Task.ID {
		t.Fatalf("got %+v (%v)", got, err)
	}
	other := again
	other.Task.IdempotencyHash = "H"
	_, err = b.Submit(ctx, other)
	wantCode(t, err, signalbox.CodeIdempotency)
	same := newSubmission()
	same.Task.ID = first.Task.ID
	_, err = b.Submit(ctx, same)
	wantCode(t, err, signalbox.CodeConflict)
	if n := pending(t, a); n != 3 {
		t.Errorf("%d tasks wait, want 3", n)
	}
}

// A known key takes precedence over a reached limit, even if this process does not know it.
func TestReplaySucceedsIfQueueIsFull(t *testing.T) {
	srv := newServer(t)
	a, b := srv.open(t, verbs.Options{}), srv.open(t, verbs.Options{})
	sub := newSubmission()
	sub.Task.IdempotencyKey, sub.Cap = "k", 1
	if _, err := a.Submit(ctx, sub); err != nil {
		t.Fatal(err)
	}
	full := newSubmission()
	full.Cap = 1
	_, err := b.Submit(ctx, full)
	wantCode(t, err, signalbox.CodeQueueFull)
	sub.Task.ID = full.Task.ID
	if got, err := b.Submit(ctx, sub); err != nil || !got.Replayed {
		t.Fatalf("got %+v (%v)", got, err)
	}
}

// A director learns the entries of others from the journal, and only these.
func TestOthersReturnsEntriesOfOtherProcesses(t *testing.T) {
	srv := newServer(t)
	a, b := srv.open(t, verbs.Options{Writer: "a"}), srv.open(t, verbs.Options{Writer: "b"})
	mustSubmit(t, a)
	theirs := mustSubmit(t, b)
	mustSubmit(t, a)
	select {
	case <-a.Changed():
	default:
		t.Error("no sign that another process wrote")
	}
	entries, through, err := a.Others(ctx, 0, 10)
	if err != nil || through != 3 || len(entries) != 1 || entries[0].QueueID != theirs.ID {
		t.Fatalf("got %+v through %d (%v)", entries, through, err)
	}
	entries, through, err = a.Others(ctx, through, 10)
	if err != nil || through != 3 || len(entries) != 0 {
		t.Fatalf("got %+v through %d (%v)", entries, through, err)
	}
	if entries, through, err = a.Others(ctx, 0, 1); err != nil || through != 1 || len(entries) != 0 {
		t.Fatalf("got %+v through %d (%v)", entries, through, err)
	}
}
