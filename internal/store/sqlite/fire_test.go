package sqlite

import (
	"context"
	"fmt"
	"testing"

	"github.com/signalbox-ai/signalbox"
)

// What the children of child_test.go do with schedules.

// fireAndSay opens a run of a schedule, and then decides it: one after the other, so that the parity of the
// revision shows whether a run is open.
func fireAndSay(s *Store, id string, say func(string, signalbox.Task)) error {
	row, err := s.Schedule(context.Background(), id)
	if signalbox.CodeOf(err) == signalbox.CodeNotFound {
		row, err = signalbox.Schedule{ID: id, Name: id}, nil
	}
	if err != nil {
		return err
	}
	run := signalbox.ScheduleRun{ID: fmt.Sprint("run-", row.Rev/2), Status: signalbox.RunFiring, FiredAt: clock()}
	if row.Rev%2 == 1 {
		run.Status = signalbox.RunQueued // an earlier process, or the previous call, left it open
	}
	row, err = s.PutSchedule(context.Background(), row, []signalbox.ScheduleRun{run}, signalbox.Entry{At: clock(), Kind: signalbox.EventScheduleFired, Schedule: id})
	if err == nil {
		say("fired", signalbox.Task{ID: id, Rev: row.Rev})
	}
	return err
}

// checkFired wants a schedule to be at least at a revision, and its runs to match its current revision.
func checkFired(t *testing.T, s *Store, id string, rev int64) {
	t.Helper()
	row, err := s.Schedule(context.Background(), id)
	if err != nil || row.Rev < rev {
		t.Fatalf("schedule %s was acknowledged at revision %d, now it is at %d (%v)", id, rev, row.Rev, err)
	}
	runs, err := s.ScheduleRuns(context.Background(), id, 1000)
	if err != nil {
		t.Fatal(err)
	}
	open := 0
	for _, r := range runs {
		if r.Status.Open() {
			open++
		}
	}
	if want := min(int(row.Rev+1)/2, signalbox.MaxScheduleRuns); open != int(row.Rev%2) || len(runs) != want {
		t.Fatalf("schedule %s at revision %d has %d firings, %d of them open; want %d", id, row.Rev, len(runs), open, want)
	}
}
