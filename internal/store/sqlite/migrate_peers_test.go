package sqlite

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/internal/store"
	"github.com/signalbox-ai/signalbox/internal/store/storetest/invariant"
)

// since3 is what files have since version 3.
type since3 struct {
	Schedules    []signalbox.Schedule
	ScheduleRuns []signalbox.ScheduleRun // of the first schedule
	Open         []signalbox.ScheduleRun
}

func readsOfSince3(t *testing.T, s *Store) (r since3) {
	t.Helper()
	ctx := context.Background()
	var errs [3]error
	r.Schedules, errs[0] = s.Schedules(ctx)
	r.ScheduleRuns, errs[1] = s.ScheduleRuns(ctx, "sched-1", 10)
	r.Open, errs[2] = s.OpenRuns(ctx)
	if err := errors.Join(errs[:]...); err != nil {
		t.Fatal(err)
	}
	return r
}

func TestFileOfSchema3KeepsEverything(t *testing.T) {
	want := wanted(t, 3)
	text, err := os.ReadFile(filepath.Join("testdata", "schema3.json"))
	if err != nil {
		t.Fatal(err)
	}
	var plans since3
	if err := json.Unmarshal(text, &plans); err != nil {
		t.Fatal(err)
	}
	s := openTest(t, Options{Path: oldFile(t, 3)})
	if got := s.Info().Schema; got != len(migrations) {
		t.Errorf("schema %d, want %d", got, len(migrations))
	}
	got := readsOf(t, s, want.Tasks)
	got.Since2 = readsOfSince2(t, s, "queue-c3")
	if len(want.Audit) == 0 || len(want.Stales) == 0 || len(want.Sessions) < 2 || len(plans.Schedules) < 2 || len(plans.Open) == 0 {
		t.Fatal("the file proves too little")
	}
	same(t, "what is read", got, want)
	same(t, "schedules", readsOfSince3(t, s), plans)
	exact(t, s)
	if err := invariant.Check(context.Background(), s); err != nil {
		t.Error(err)
	}
	peersBegin(t, s)
	mustSubmit(t, s)
	exact(t, s)
}

// peersBegin wants an older file to have neither directors nor tickets, and to
// keep them from now on.
func peersBegin(t *testing.T, s *Store) {
	t.Helper()
	ctx, now := context.Background(), clock()
	list, err := s.Directors(ctx)
	held, err2 := s.Holders(ctx)
	if err := errors.Join(err, err2); err != nil || len(list) != 0 || len(held) != 0 {
		t.Errorf("directors %v hold %v (%v), want none", list, held, err)
	}
	me := store.Director{ID: "here:1", Run: "r", StartedAt: now, Expires: now.Add(time.Second)}
	answer, err := s.Beat(ctx, store.Beat{Director: me, Take: []string{"a"}, Now: now})
	if err != nil {
		t.Fatal(err)
	}
	same(t, "taken", answer.Taken, []string{"a"})
	step := store.TicketStep{Queue: "q", Concurrent: 1, Enter: []store.Ticket{{Queue: "q", ID: "t"}}, Now: now, Expires: now.Add(time.Second)}
	line, err := s.Tickets(ctx, step)
	if err != nil || len(line) != 1 || line[0].Place != 1 || line[0].Fence != 1 {
		t.Errorf("tickets %+v (%v), want the first one", line, err)
	}
}
