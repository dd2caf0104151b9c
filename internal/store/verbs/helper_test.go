package verbs_test

import (
	"context"
	"crypto/rand"
	"testing"
	"time"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/internal/store"
	"github.com/signalbox-ai/signalbox/internal/store/verbs"
)

var ctx = context.Background()

func clock() time.Time { return time.Now().UTC().Truncate(time.Millisecond) }

// newSubmission returns a submission for the queue "work", with a unique id.
func newSubmission() store.Submission {
	at := clock()
	id, err := signalbox.NewID(at, rand.Reader)
	if err != nil {
		panic(err)
	}
	return store.Submission{
		Task: signalbox.Task{
			ID: id, State: signalbox.Pending, Queue: signalbox.QueueWork, Limit: signalbox.LimitWork, MaxAttempts: 3,
			Source: signalbox.SourceAPI, OnLost: signalbox.LostFail, Preview: "do it", CreatedAt: at,
		},
		Request: signalbox.Request{Prompt: "do it"}, Now: at,
	}
}

func newClaim(agent string, slots int) store.ClaimRequest {
	at := clock()
	return store.ClaimRequest{
		Agent: agent, AgentURL: "http://" + agent, Slots: slots, Queues: []string{signalbox.AgentQueue(agent), signalbox.QueueWork},
		Now: at, Expires: at.Add(time.Minute),
	}
}

func mustSubmit(t testing.TB, s *verbs.Shared) signalbox.Task {
	t.Helper()
	got, err := s.Submit(ctx, newSubmission())
	if err != nil {
		t.Fatal(err)
	}
	return got.Task
}

func mustClaim(t testing.TB, s *verbs.Shared, agent string) signalbox.Task {
	t.Helper()
	got, err := s.Claim(ctx, newClaim(agent, 1))
	if err != nil || !got.Found {
		t.Fatalf("claimed %v (%v)", got.Found, err)
	}
	return got.Task
}

// happen applies an event to a task.
func happen(s store.Store, task signalbox.Task, ev signalbox.Event) (signalbox.Task, error) {
	ev.Now, ev.Fence = clock(), task.Fence
	c, err := signalbox.Next(task, ev)
	if err != nil {
		return task, err
	}
	return s.Apply(ctx, c, ev.Now)
}

func finish(t testing.TB, s store.Store, task signalbox.Task) signalbox.Task {
	t.Helper()
	got, err := happen(s, task, signalbox.Event{Kind: signalbox.EventFinish, Reason: signalbox.ReasonCompleted})
	if err != nil {
		t.Fatal(err)
	}
	return got
}

func pending(t testing.TB, s store.Store) int {
	t.Helper()
	n, err := s.Counts(ctx)
	if err != nil {
		t.Fatal(err)
	}
	return n.Pending
}

func wantCode(t testing.TB, err error, code signalbox.Code) {
	t.Helper()
	if signalbox.CodeOf(err) != code {
		t.Fatalf("got %v, want the code %s", err, code)
	}
}
