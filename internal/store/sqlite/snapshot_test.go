package sqlite

import (
	"context"
	"errors"
	"path/filepath"
	"testing"
	"time"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/internal/store/pack"
	"github.com/signalbox-ai/signalbox/internal/store/storetest"
)

// A reader that sees a commit of which the board does not know yet waits for
// the board, but not longer than its caller does, and holds up nobody.
func TestSnapshotWaitsNoLongerThanItsCaller(t *testing.T) {
	s := openTest(t, Options{})
	mustSubmit(t, s)
	s.board.mu.Lock()
	s.board.commits-- // as between a commit and the writer's word
	s.board.mu.Unlock()
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Millisecond)
	defer cancel()
	if _, err := s.Snapshot(ctx, 1); !errors.Is(err, context.DeadlineExceeded) || signalbox.CodeOf(err) != signalbox.CodeStoreFailed {
		t.Errorf("got %v", err)
	}
	mustSubmit(t, s) // the board is right again, and the one who asked is gone
	shot, err := s.Snapshot(context.Background(), 1)
	if err != nil || shot.Counts.Pending != 2 || len(shot.Heads["work"]) != 1 {
		t.Errorf("%+v, %v", shot, err)
	}
	exact(t, s)
}

// A commit is numbered where it wrote something, and only there.
func TestCommitsAreNumbered(t *testing.T) {
	s, ctx := openTest(t, Options{}), context.Background()
	commits := func() int64 {
		s.board.mu.RLock()
		defer s.board.mu.RUnlock()
		return s.board.commits
	}
	mustSubmit(t, s)
	before := commits()
	if _, err := s.PutSchedule(ctx, signalbox.Schedule{ID: "s", Rev: 7}, nil, signalbox.Entry{}); err == nil {
		t.Error("a stale schedule was stored")
	}
	if _, err := s.DeleteSchedule(ctx, "s", signalbox.Entry{}); err != nil {
		t.Error(err)
	}
	if got := commits(); got != before {
		t.Errorf("%d commits of nothing", got-before)
	}
	if err := s.PutToken(ctx, signalbox.Token{ID: "t"}); err != nil { // writes no entry and moves no counter
		t.Fatal(err)
	}
	if got := commits(); got != before+1 {
		t.Errorf("commit %d after commit %d", got, before)
	}
	exact(t, s)
}

// All are stored in one commit, which is what takes the time otherwise.
func TestFullOfSchedules(t *testing.T) {
	s, err := Open(context.Background(), Options{Path: filepath.Join(t.TempDir(), "x.db")})
	if err != nil {
		t.Fatal(err)
	}
	storetest.RunFull(t, s, func(rows []signalbox.Schedule) error {
		return s.do(context.Background(), 0, func(w *writer) error {
			for i := range rows {
				row := rows[i]
				row.Rev++
				if err := w.keepSchedule(&planned{}, &row, pack.Schedule(&row)); err != nil {
					return err
				}
			}
			return nil
		})
	})
}
