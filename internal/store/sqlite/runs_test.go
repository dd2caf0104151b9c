package sqlite

import (
	"context"
	"path/filepath"
	"testing"
	"time"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/internal/store"
)

// The newest runs of an agent are kept, pruned ones dropped, and they are read again when the file is opened.
func TestRunsAreTheNewestStored(t *testing.T) {
	ctx, path := context.Background(), filepath.Join(t.TempDir(), "x.db")
	s := openTest(t, Options{Path: path})
	at := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	for n := range maxRuns + 20 {
		mustSubmit(t, s)
		c, err := s.Claim(ctx, newClaim("a"))
		if err != nil || !c.Found {
			t.Fatal(c.Found, err)
		}
		task := c.Task
		task.DispatchedAt = at.Add(time.Duration(n) * time.Hour) // the test's clock
		end := task.DispatchedAt.Add(time.Duration(n) * time.Second)
		change, err := signalbox.Next(task, signalbox.Event{
			Kind: signalbox.EventFinish, Now: end, Fence: task.Fence, Reason: signalbox.ReasonCompleted,
		})
		if err != nil {
			t.Fatal(err)
		}
		change.Task.CreatedAt, change.Task.StartedAt, change.Task.EndedAt = at, task.DispatchedAt, end
		if _, err := s.Apply(ctx, change, end); err != nil {
			t.Fatal(err)
		}
	}
	check := func(s *Store, count int) {
		t.Helper()
		took, err := s.Durations(ctx, "a", 1000)
		if err != nil || len(took) != count || took[0] != (maxRuns+19)*time.Second || took[count-1] != time.Duration(maxRuns+20-count)*time.Second {
			t.Fatalf("%d runs from %v to %v (%v), want %d", len(took), took[0], took[len(took)-1], err, count)
		}
		exact(t, s)
	}
	check(s, maxRuns)
	if did, err := s.Prune(ctx, store.Pruning{Ended: at.Add(30 * time.Hour), Limit: 1000}); err != nil || did.Tasks != 30 {
		t.Fatalf("pruned %+v (%v), want 30", did, err)
	}
	check(s, maxRuns-10)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	check(openTest(t, Options{Path: path}), maxRuns-10)
}
