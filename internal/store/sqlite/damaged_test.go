package sqlite

import (
	"context"
	"log/slog"
	"path/filepath"
	"strings"
	"testing"

	"zombiezen.com/go/sqlite"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/internal/store"
)

// changes are ways to change the row of the first of three tasks in the file. Each must be detected, in any
// state of the task.
var changes = map[string]string{
	"a byte of the body":      `UPDATE tasks SET body = substr(body, 1, 30) || x'ff' || substr(body, 32) WHERE seq = 1`,
	"its sum":                 `UPDATE tasks SET body = x'0000000000000000' || substr(body, 9) WHERE seq = 1`,
	"the body of another":     `UPDATE tasks SET body = (SELECT body FROM tasks WHERE seq = 2) WHERE seq = 1`,
	"no body":                 `UPDATE tasks SET body = x'' WHERE seq = 1`,
	"its queue":               `UPDATE tasks SET queue = 'agent:b' WHERE seq = 1`,
	"its place":               `UPDATE tasks SET order_key = order_key - 1000000 WHERE seq = 1`,
	"its id":                  `UPDATE tasks SET id = 'queue-other' WHERE seq = 1`,
	"its state":               `UPDATE tasks SET state = 5 WHERE seq = 1`,
	"its session":             `UPDATE tasks SET session = 'a' WHERE seq = 1`,
	"its parent":              `UPDATE tasks SET parent = 'a' WHERE seq = 1`,
	"its key":                 `UPDATE tasks SET key = 'a' WHERE seq = 1`,
	"its time":                `UPDATE tasks SET not_before_ms = 1 WHERE seq = 1`,
	"the request":             `UPDATE requests SET body = substr(body, 1, 10) || x'ff' || substr(body, 12) WHERE seq = 1`,
	"the request of another":  `UPDATE requests SET body = (SELECT body FROM requests WHERE seq = 2) WHERE seq = 1`,
	"a sum under another key": `UPDATE tasks SET body = (SELECT body FROM other.tasks WHERE seq = 1) WHERE seq = 1`,
}

func changed(t *testing.T, path, sql string) {
	t.Helper()
	c, err := openConn(path, sqlite.OpenReadWrite)
	if err != nil {
		t.Fatal(err)
	}
	defer c.close()
	if strings.Contains(sql, "other.") {
		other := filepath.Join(t.TempDir(), "other.db")
		s, err := Open(context.Background(), Options{Path: other})
		if err != nil {
			t.Fatal(err)
		}
		mustSubmit(t, s)
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		if _, err := c.exec("ATTACH '" + other + "' AS other"); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := c.exec(sql); err != nil {
		t.Fatal(err)
	}
}

func TestChangedRowIsQuarantinedAndNeverClaimed(t *testing.T) {
	for name, sql := range changes {
		for when, live := range map[string]bool{"while closed": false, "while open": true} {
			t.Run(name+" "+when, func(t *testing.T) { quarantined(t, sql, live) })
		}
	}
}

func quarantined(t *testing.T, sql string, live bool) {
	ctx, path, key := context.Background(), filepath.Join(t.TempDir(), "x.db"), keyOfAll(3)
	open := func() *Store { return openTest(t, Options{Path: path, Key: key}) }
	first := open()
	var tasks []signalbox.Task
	for range 3 {
		tasks = append(tasks, mustSubmit(t, first))
	}
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}
	var s *Store
	if live {
		s = open()
		changed(t, path, sql)
	} else {
		changed(t, path, sql)
		s = open()
	}
	for n := 1; n < 3; n++ {
		got, err := s.Claim(ctx, newClaim([]string{"", "b", "c"}[n]))
		if err != nil || !got.Found || got.Task.ID != tasks[n].ID {
			t.Fatalf("claimed %s (%v), want %s", got.Task.ID, err, tasks[n].ID)
		}
	}
	if got, err := s.Claim(ctx, newClaim("a")); err != nil || got.Found {
		t.Fatalf("claimed %+v (%v)", got.Task, err)
	}
	damaged, err := s.Damaged(ctx)
	if err != nil || len(damaged) != 1 || (damaged[0].ID != tasks[0].ID && damaged[0].ID != "queue-other") {
		t.Fatalf("damaged: %v (%v)", damaged, err)
	}
	if _, err := s.Task(ctx, damaged[0].ID); signalbox.CodeOf(err) != signalbox.CodeStoreCorrupt || !strings.Contains(err.Error(), "damaged") {
		t.Errorf("the damaged task is read: %v", err)
	}
	if n := waiting(t, s); n != 0 {
		t.Errorf("%d tasks wait, want none", n)
	}
	exact(t, s)
	mustSubmit(t, s)
	if got, err := s.Claim(ctx, newClaim("a")); err != nil || !got.Found {
		t.Errorf("what came after it is not claimed: %v", err)
	}
}

// A damaged row that a reader finds is omitted from lists at once, and quarantined with the next batch.
func TestReadSkipsDamagedRow(t *testing.T) {
	ctx := context.Background()
	s := openTest(t, Options{})
	bad, good := mustSubmit(t, s), mustSubmit(t, s)
	changed(t, s.backend.opts.Path, changes["a byte of the body"])
	list, err := s.Waiting(ctx, "work", store.Cursor{}, 10)
	if err != nil || len(list) != 1 || list[0].ID != good.ID {
		t.Fatalf("waiting: %v (%v)", list, err)
	}
	mustSubmit(t, s)
	if damaged, err := s.Damaged(ctx); err != nil || len(damaged) != 1 || damaged[0].ID != bad.ID {
		t.Errorf("damaged: %v (%v)", damaged, err)
	}
	exact(t, s)
}

// The slot of a task in flight whose row is damaged is withheld: its execution may still run.
func TestSlotOfDamagedTaskIsWithheld(t *testing.T) {
	ctx, path := context.Background(), filepath.Join(t.TempDir(), "x.db")
	s := openTest(t, Options{Path: path})
	mustSubmit(t, s)
	if got, err := s.Claim(ctx, newClaim("a")); err != nil || !got.Found {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	changed(t, path, changes["a byte of the body"])
	s = openTest(t, Options{Path: path})
	slots, err := s.Slots(ctx)
	if err != nil || len(slots) != 1 || !slots[0].Withheld {
		t.Errorf("slots: %+v (%v)", slots, err)
	}
	exact(t, s)
}

// Another key than before is logged, and the rows are accepted.
func TestOtherKeyIsReportedAndAccepted(t *testing.T) {
	ctx, path := context.Background(), filepath.Join(t.TempDir(), "x.db")
	var log strings.Builder
	var task signalbox.Task
	for n, key := range []func() ([]byte, error){nil, keyOfAll(1), keyOfAll(2), nil} {
		log.Reset()
		s, err := Open(ctx, Options{Path: path, Key: key, Log: slog.New(slog.NewTextHandler(&log, nil))})
		if err != nil {
			t.Fatal(err)
		}
		if n == 0 {
			task = mustSubmit(t, s)
		}
		whole, err := s.Whole(ctx, task.ID)
		if err != nil || whole.Task != task || whole.Request.Prompt != "do it" {
			t.Errorf("key %d: %+v (%v)", n, whole, err)
		}
		if said := strings.Contains(log.String(), "another key"); said != (n > 0) {
			t.Errorf("key %d: the log says %q", n, log.String())
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

// A damaged row of a parked task is quarantined like any other: the list of its gate has the others, and its
// session continues.
func TestDamagedParkedTaskIsNotListed(t *testing.T) {
	ctx, path := context.Background(), filepath.Join(t.TempDir(), "x.db")
	s := openTest(t, Options{Path: path})
	for range 2 {
		mustSubmit(t, s)
		got, err := s.Claim(ctx, newClaim("a"))
		if err != nil || !got.Found {
			t.Fatal(err)
		}
		c, err := signalbox.Next(got.Task, signalbox.Event{
			Kind: signalbox.EventPark, Now: got.Task.DispatchedAt, Fence: got.Task.Fence, SessionID: "s",
			Parking: &signalbox.Parking{Gate: signalbox.Gate{Kind: signalbox.GateAccount, Name: "max"}},
		})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := s.Apply(ctx, c, got.Task.DispatchedAt); err != nil {
			t.Fatal(err)
		}
	}
	changed(t, path, changes["a byte of the body"])
	parked := func() int {
		t.Helper()
		list, err := s.Parked(ctx, signalbox.GateAccount, "max")
		if err != nil {
			t.Fatal(err)
		}
		return len(list)
	}
	if n := parked(); n != 1 {
		t.Errorf("%d are listed as parked, want the one that can be read", n)
	}
	mustSubmit(t, s) // this quarantines the damaged one
	if damaged, err := s.Damaged(ctx); err != nil || len(damaged) != 1 {
		t.Errorf("damaged: %v (%v)", damaged, err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	s = openTest(t, Options{Path: path})
	if n := parked(); n != 1 {
		t.Errorf("%d are listed as parked after a restart", n)
	}
	counts, err := s.Counts(ctx)
	if err != nil || counts.Pending != 2 {
		t.Errorf("%d wait (%v), want the one that is parked and a new one", counts.Pending, err)
	}
	exact(t, s)
}
