package engine_test

import (
	"testing"
	"time"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/internal/engine"
	"github.com/signalbox-ai/signalbox/internal/peers/peerstest"
	"github.com/signalbox-ai/signalbox/internal/store/memory"
)

// EnqueuedAt never decreases, so a file from a machine with a wrong clock must not set it far ahead for good.
func TestIncidentRestoredFutureTimeIsClamped(t *testing.T) {
	tw := newTwin(t, peerstest.New(memory.New(memory.Options{})))
	first := submitTo(t, tw, engine.NewTask{Prompt: "first"})
	late := time.Now().AddDate(50, 0, 0)
	in := engine.Transfer{Task: first, Request: signalbox.Request{Prompt: "from elsewhere"}}
	in.Task.ID = first.ID[:len(first.ID)-1] + map[bool]string{true: "h", false: "g"}[first.ID[len(first.ID)-1] == 'g']
	in.Task.CreatedAt, in.Task.EnqueuedAt = late, late
	got, err := tw.Restore(t.Context(), in, false)
	if err != nil || got.EnqueuedAt.After(time.Now()) || got.CreatedAt.After(time.Now()) {
		t.Fatalf("enqueued at %s, created at %s (%v)", got.EnqueuedAt, got.CreatedAt, err)
	}
	if next := submitTo(t, tw, engine.NewTask{Prompt: "next"}); next.EnqueuedAt.After(time.Now().Add(time.Minute)) {
		t.Errorf("what comes next is enqueued at %s", next.EnqueuedAt)
	}
}
