package memory_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/internal/store"
	"github.com/signalbox-ai/signalbox/internal/store/memory"
)

// BenchmarkLife takes tasks from submit to end while 100,000 others wait, half of them behind the turns of
// one session.
func BenchmarkLife(b *testing.B) {
	ctx, s := context.Background(), memory.New(memory.Options{})
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	n := 0
	submit := func() {
		n++
		t := signalbox.Task{ID: fmt.Sprint("queue-", n), State: signalbox.Pending, Queue: "work", MaxAttempts: 3, CreatedAt: now}
		if n%2 == 0 {
			t.SessionID = "s"
		}
		if _, err := s.Submit(ctx, store.Submission{Task: t, Now: now}); err != nil {
			b.Fatal(err)
		}
	}
	for range 100_000 {
		submit()
	}
	for b.Loop() {
		submit()
		c, err := s.Claim(ctx, store.ClaimRequest{Agent: "a", Slots: 1, Queues: []string{"work"}, Now: now})
		if err != nil || !c.Found {
			b.Fatal(c.Found, err)
		}
		change, err := signalbox.Next(c.Task, signalbox.Event{
			Kind: signalbox.EventFinish, Now: now, Fence: c.Task.Fence, Reason: signalbox.ReasonCompleted,
		})
		if err != nil {
			b.Fatal(err)
		}
		if _, err = s.Apply(ctx, change, now); err != nil {
			b.Fatal(err)
		}
	}
}
