package stores_test

import (
	"context"
	"testing"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/internal/store"
	"github.com/signalbox-ai/signalbox/internal/store/storetest"
	"github.com/signalbox-ai/signalbox/internal/store/storetest/stores"
)

// What one process writes, the other learns from the journal, and reads the rows in one call: the existing
// ones, in the requested order.
func TestAnotherProcessReadsWhatWasWritten(t *testing.T) {
	for _, kind := range []string{"postgres", "redis"} {
		t.Run(kind, func(t *testing.T) {
			s := stores.OpenTwice(t, kind)
			t.Cleanup(func() {
				if err := s.Close(); err != nil {
					t.Error(err)
				}
			})
			several := s.(storetest.Several)
			there, here := several.Process(0).(store.Shared), several.Process(1).(store.Shared)
			ctx := context.Background()
			for _, id := range []string{"queue-a", "queue-b", "queue-c"} {
				_, err := there.Submit(ctx, store.Submission{
					Task:    signalbox.Task{ID: id, State: signalbox.Pending, Queue: signalbox.QueueWork, Limit: signalbox.LimitWork, MaxAttempts: 3, CreatedAt: noon},
					Request: signalbox.Request{Prompt: id}, Now: noon,
				})
				if err != nil {
					t.Fatal(err)
				}
			}
			entries, through, err := here.Others(ctx, 0, 100)
			if err != nil || len(entries) != 3 || through != 3 {
				t.Fatalf("the journal has %v up to %d (%v)", entries, through, err)
			}
			if own, through, err := there.Others(ctx, 0, 100); err != nil || len(own) != 0 || through != 3 {
				t.Errorf("it hears of its own: %v up to %d (%v)", own, through, err)
			}
			rows, err := here.Tasks(ctx, []string{"queue-c", "queue-x", "queue-a"})
			if err != nil || len(rows) != 2 || rows[0].ID != "queue-c" || rows[1].ID != "queue-a" || rows[1].Seq != 1 {
				t.Errorf("the rows are %v (%v)", rows, err)
			}
			if rows, err := here.Tasks(ctx, nil); err != nil || len(rows) != 0 {
				t.Errorf("the rows of nothing are %v (%v)", rows, err)
			}
		})
	}
}
