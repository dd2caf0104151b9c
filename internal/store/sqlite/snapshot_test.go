package sqlite

import (
	"context"
	"errors"
	"path/filepath"
	"testing"
	"time"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/internal/store/storetest"
	"github.com/signalbox-ai/signalbox/internal/store/verbs"
)

// A reader that sees a commit that is not yet in the live totals waits for them, but no longer than its
// context, and blocks no others.
func TestSnapshotEndsWithContext(t *testing.T) {
	s := openTest(t, Options{})
	mustSubmit(t, s)
	s.backend.totals.mu.Lock()
	s.backend.totals.Moment-- // as between a commit and the update of the totals
	s.backend.totals.mu.Unlock()
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Millisecond)
	defer cancel()
	if _, err := s.Snapshot(ctx, 1); !errors.Is(err, context.DeadlineExceeded) || signalbox.CodeOf(err) != signalbox.CodeStoreFailed {
		t.Errorf("got %v", err)
	}
	mustSubmit(t, s) // the live totals match again, and the waiting reader is gone
	shot, err := s.Snapshot(context.Background(), 1)
	if err != nil || shot.Counts.Pending != 2 || len(shot.Heads["work"]) != 1 {
		t.Errorf("%+v, %v", shot, err)
	}
	exact(t, s)
}

// All are stored in one commit, which otherwise takes most of the time.
func TestFullOfSchedules(t *testing.T) {
	s, err := Open(context.Background(), Options{Path: filepath.Join(t.TempDir(), "x.db")})
	if err != nil {
		t.Fatal(err)
	}
	storetest.RunFull(t, s, func(rows []signalbox.Schedule) error {
		b := s.backend
		d := verbs.Delta{From: b.totals.Counters, To: b.totals.Counters, Docs: verbs.CountDocs(int64(len(rows)), 0, 0)}
		d.To.Moment++
		for i := range rows {
			rows[i].Rev++
			d.Docs = append(d.Docs, verbs.ScheduleDocs(&rows[i])...)
		}
		return b.Commit(context.Background(), &d)
	})
}
