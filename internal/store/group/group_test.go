package group_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/internal/store"
	"github.com/signalbox-ai/signalbox/internal/store/group"
	"github.com/signalbox-ai/signalbox/internal/testkit"
)

const patient = 10 * time.Second

// call runs a verb and returns its result.
func call(ctx context.Context, b *group.Inbox[string], verb string, alone bool) <-chan error {
	answer := make(chan error, 1)
	go func() { answer <- b.Do(ctx, verb, 0, alone) }()
	return answer
}

// arrived waits until that many verbs wait.
func arrived(t *testing.T, b *group.Inbox[string], n int) {
	t.Helper()
	testkit.Wait(t, fmt.Sprint(n, " verbs wait"), func() bool { return b.Len() >= n })
}

func told(t *testing.T, answer <-chan error) error {
	t.Helper()
	select {
	case err := <-answer:
		return err
	case <-time.After(patient):
		t.Fatal("no answer")
		return nil
	}
}

func verbs(batch *group.Batch[string]) (list []string) {
	for _, j := range batch.Jobs {
		list = append(list, j.Verb)
	}
	return list
}

func TestWaitingVerbsShareABatch(t *testing.T) {
	b := group.New[string]()
	var batch group.Batch[string]
	first := call(t.Context(), b, "a", false)
	arrived(t, b, 1)
	second := call(t.Context(), b, "b", false)
	arrived(t, b, 2)
	<-b.Sign()
	if !b.Take(&batch) || !slices.Equal(verbs(&batch), []string{"a", "b"}) {
		t.Fatalf("the batch has %v", verbs(&batch))
	}
	batch.Jobs[1].Err = errors.New("no")
	batch.Answer()
	if err := told(t, first); err != nil {
		t.Error(err)
	}
	if err := told(t, second); err == nil || err.Error() != "no" {
		t.Errorf("got %v", err)
	}
	if b.Take(&batch) {
		t.Errorf("the batch has %v", verbs(&batch))
	}
}

func TestAloneVerbSharesNoBatch(t *testing.T) {
	b := group.New[string]()
	var answers []<-chan error
	for n, verb := range []string{"a", "alone", "b"} {
		answers = append(answers, call(t.Context(), b, verb, verb == "alone"))
		arrived(t, b, n+1)
	}
	for _, want := range []string{"a", "alone", "b"} {
		var batch group.Batch[string]
		if <-b.Sign(); !b.Take(&batch) || b.Joined(&batch, 3) || !slices.Equal(verbs(&batch), []string{want}) {
			t.Fatalf("the batch has %v, want %s", verbs(&batch), want)
		}
		batch.Answer()
	}
	for _, answer := range answers {
		if err := told(t, answer); err != nil {
			t.Error(err)
		}
	}
}

func TestCallerLeavingEarlyLeavesNothing(t *testing.T) {
	b := group.New[string]()
	ctx, cancel := context.WithCancel(t.Context())
	answer := call(ctx, b, "a", false)
	arrived(t, b, 1)
	cancel()
	if err := told(t, answer); !errors.Is(err, context.Canceled) || signalbox.CodeOf(err) != signalbox.CodeStoreFailed {
		t.Errorf("got %v", err)
	}
	var batch group.Batch[string]
	if b.Take(&batch) {
		t.Errorf("the batch has %v", verbs(&batch))
	}
}

func TestCallerLeavingLateGetsOutcomeWithinPatience(t *testing.T) {
	for _, answered := range []bool{true, false} {
		b := group.New[string]()
		b.Patience = time.Millisecond
		if answered {
			b.Patience = patient
		}
		ctx, cancel := context.WithCancel(t.Context())
		answer := call(ctx, b, "a", false)
		arrived(t, b, 1)
		var batch group.Batch[string]
		b.Take(&batch)
		cancel()
		if answered {
			batch.Answer()
		}
		err := told(t, answer)
		if answered != (err == nil) || (err != nil && !errors.Is(err, context.Canceled)) {
			t.Errorf("answered %v: got %v", answered, err)
		}
		if !answered {
			batch.Answer() // it must not wait for callers that gave up
		}
	}
}

func TestReturningCallersJoinTheBatch(t *testing.T) {
	b := group.New[string]()
	first := call(t.Context(), b, "a", false)
	arrived(t, b, 1)
	var batch group.Batch[string]
	b.Take(&batch)
	if b.Joined(&batch, 1) {
		t.Error("another verb joined a single caller's")
	}
	second := call(t.Context(), b, "b", false)
	arrived(t, b, 1)
	if !b.Joined(&batch, 2) || !slices.Equal(verbs(&batch), []string{"a", "b"}) {
		t.Errorf("the batch has %v", verbs(&batch))
	}
	batch.Fail(errors.New("no"))
	batch.Answer()
	if told(t, first) == nil || told(t, second) == nil {
		t.Error("a batch that failed is acknowledged")
	}
}

// A verb that is announced to be followed shares its batch with the next one, even without other callers.
func TestFollowingVerbSharesTheBatch(t *testing.T) {
	b := group.New[string]()
	second := make(chan (<-chan error), 1)
	first := make(chan error, 1)
	go func() {
		first <- b.Do(store.Followed(t.Context(), func() {
			if b.Len() != 1 {
				t.Error("the following verb is called before the first one waits")
			}
			second <- call(t.Context(), b, "b", false)
		}), "a", 0, false)
	}()
	answer := <-second
	arrived(t, b, 2)
	var batch group.Batch[string]
	<-b.Sign()
	if !b.Take(&batch) || b.Joined(&batch, 1) || !slices.Equal(verbs(&batch), []string{"a", "b"}) {
		t.Fatalf("the batch has %v", verbs(&batch))
	}
	batch.Answer()
	if err := told(t, first); err != nil {
		t.Error(err)
	}
	if err := told(t, answer); err != nil {
		t.Error(err)
	}
}

// If the announced verb arrives while the batch is in progress, it joins; if it does not arrive, the batch
// continues without it.
func TestBatchWaitsForFollowingVerb(t *testing.T) {
	for _, comes := range []bool{true, false} {
		b := group.New[string]()
		first := make(chan error, 1)
		go func() { first <- b.Do(store.Followed(t.Context(), func() {}), "a", 0, false) }()
		arrived(t, b, 1)
		var batch group.Batch[string]
		b.Take(&batch)
		var second <-chan error
		if comes {
			second = call(t.Context(), b, "b", false)
			arrived(t, b, 1)
		}
		if got := b.Joined(&batch, 1); got != comes {
			t.Errorf("joined: %v, want %v", got, comes)
		}
		if b.Joined(&batch, 1) {
			t.Error("it waits for one more")
		}
		batch.Answer()
		if err := told(t, first); err != nil {
			t.Error(err)
		}
		if comes {
			if err := told(t, second); err != nil {
				t.Error(err)
			}
		}
	}
}

func TestClosedInboxRefusesVerbs(t *testing.T) {
	b := group.New[string]()
	if b.Finished() || b.Closed() != nil || !b.Close() || b.Close() || !b.Finished() {
		t.Error("closed twice, or not once")
	}
	if err := b.Do(t.Context(), "a", 0, false); signalbox.CodeOf(err) != signalbox.CodeUnavailable || b.Closed() == nil {
		t.Errorf("got %v", err)
	}
}

// A caller whose deadline passes has not gone away: the store is slow.
func TestDeadlineIsNotReportedAsCancel(t *testing.T) {
	late, end := context.WithTimeout(t.Context(), 0)
	defer end()
	if err := group.Gone(late); err == nil || !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), "time was up") {
		t.Errorf("%v, want that its time was up", err)
	}
	gone, leave := context.WithCancel(t.Context())
	leave()
	if err := group.Gone(gone); err == nil || !strings.Contains(err.Error(), "caller went away") {
		t.Errorf("%v, want that the caller went away", err)
	}
}
