package sqlite

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"zombiezen.com/go/sqlite"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/internal/store"
	"github.com/signalbox-ai/signalbox/internal/store/storetest/invariant"
)

// later is a step that a newer version could have.
func later(sql ...string) []migration {
	return append(append([]migration(nil), migrations...), migration{len(migrations) + 1, sql})
}

func TestStepsAreNumberedWithoutGaps(t *testing.T) {
	for i, m := range migrations {
		if m.version != i+1 {
			t.Errorf("step %d has the number %d", i+1, m.version)
		}
	}
}

// oldFile makes the file that a version of the schema left, from a dump of one
// that was written before there was a next one.
func oldFile(t *testing.T, version int) string {
	t.Helper()
	dump, err := os.ReadFile(filepath.Join("testdata", fmt.Sprintf("schema%d.sql", version)))
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "x.db")
	c, err := openConn(path, sqlite.OpenReadWrite|sqlite.OpenCreate)
	if err != nil {
		t.Fatal(err)
	}
	steps := strings.SplitAfter(string(dump), ";\n")
	steps = append(steps, "PRAGMA application_id = "+strconv.Itoa(applicationID), "PRAGMA user_version = "+strconv.Itoa(version), "PRAGMA journal_mode = WAL")
	for _, step := range steps {
		if _, err := c.exec(step); err != nil {
			t.Fatalf("%v\n\t%s", err, step)
		}
	}
	if err := c.close(); err != nil {
		t.Fatal(err)
	}
	return path
}

// reads is what an old file held, as the version that wrote it read it.
type reads struct {
	Tasks    []signalbox.Task
	Requests []signalbox.Request // without what was sealed
	Results  []signalbox.Result
	Slots    []signalbox.Slot
	Agents   []signalbox.Agent
	Pauses   []signalbox.Pause
	Journal  []signalbox.Entry
	Since2
}

// Since2 is what files have since version 2.
type Since2 struct {
	Sessions []signalbox.Session
	Stales   []signalbox.Stale // of the first task
	Tokens   []signalbox.Token
	Users    []signalbox.User
	Audit    []signalbox.Audit
}

// wanted reads what a version of the schema had read of its file.
func wanted(t *testing.T, version int) (want reads) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("testdata", fmt.Sprintf("schema%d.json", version)))
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(text, &want); err != nil {
		t.Fatal(err)
	}
	return want
}

func readsOfSince2(t *testing.T, s *Store, first string) (r Since2) {
	t.Helper()
	ctx := context.Background()
	var errs [5]error
	page, err := s.Sessions(ctx, store.SessionQuery{Limit: 1000})
	r.Sessions, errs[0] = page.Sessions, err
	r.Stales, errs[1] = s.Stales(ctx, first)
	r.Tokens, errs[2] = s.Tokens(ctx)
	r.Users, errs[3] = s.Users(ctx)
	r.Audit, errs[4] = s.AuditLog(ctx, store.AuditQuery{Limit: 1000})
	if err := errors.Join(errs[:]...); err != nil {
		t.Fatal(err)
	}
	return r
}

func readsOf(t *testing.T, s *Store, tasks []signalbox.Task) reads {
	t.Helper()
	ctx := context.Background()
	var r reads
	for _, want := range tasks {
		task, err := s.Task(ctx, want.ID)
		if err != nil {
			t.Fatal(err)
		}
		request, err := s.Request(ctx, want.ID)
		if err != nil {
			t.Fatal(err)
		}
		if got := string(request.SealedEnv); (got == "secret") != task.HasEnv {
			t.Errorf("the environment of %s is %q", task.ID, got)
		}
		request.SealedEnv = nil
		result, err := s.Result(ctx, want.ID)
		if err != nil {
			t.Fatal(err)
		}
		r.Tasks, r.Requests, r.Results = append(r.Tasks, task), append(r.Requests, request), append(r.Results, result)
	}
	var errs [4]error
	r.Slots, errs[0] = s.Slots(ctx)
	r.Agents, errs[1] = s.Agents(ctx)
	r.Pauses, errs[2] = s.Pauses(ctx)
	r.Journal, errs[3] = s.Journal(ctx, 0, 1000)
	if err := errors.Join(errs[:]...); err != nil {
		t.Fatal(err)
	}
	return r
}

func TestFileOfSchema1KeepsEverything(t *testing.T) {
	want := wanted(t, 1)
	s := openTest(t, Options{Path: oldFile(t, 1)})
	if got := s.Info().Schema; got != len(migrations) {
		t.Errorf("schema %d, want %d", got, len(migrations))
	}
	same(t, "what is read", readsOf(t, s, want.Tasks), want)
	exact(t, s)
	if err := invariant.Check(context.Background(), s); err != nil {
		t.Error(err)
	}
	page, err := s.Sessions(context.Background(), store.SessionQuery{Limit: 10})
	if err != nil {
		t.Fatal(err)
	}
	at := func(second int) time.Time { return time.Date(2026, 3, 1, 12, 0, second, 0, time.UTC) }
	same(t, "sessions", page.Sessions, []signalbox.Session{
		{ID: "talk-2", Agent: "a", State: signalbox.SessionActive, Turns: 1, CreatedAt: at(13), LastUsed: at(13)},
		{ID: "talk-1", Agent: "a", State: signalbox.SessionActive, Turns: 1, CreatedAt: at(3), LastUsed: at(3)},
	})
	lifeGoesOn(t, s)
}

func TestFileOfSchema2KeepsEverything(t *testing.T) {
	want := wanted(t, 2)
	s := openTest(t, Options{Path: oldFile(t, 2)})
	if got := s.Info().Schema; got != len(migrations) {
		t.Errorf("schema %d, want %d", got, len(migrations))
	}
	got := readsOf(t, s, want.Tasks)
	got.Since2 = readsOfSince2(t, s, want.Tasks[0].ID)
	if len(want.Audit) == 0 || len(want.Stales) == 0 || len(want.Sessions) < 2 {
		t.Fatal("the file proves too little")
	}
	same(t, "what is read", got, want)
	exact(t, s)
	if err := invariant.Check(context.Background(), s); err != nil {
		t.Error(err)
	}
	shot, err := s.Snapshot(context.Background(), 10)
	if err != nil || len(shot.InFlight) != 2 || shot.Entry != want.Journal[len(want.Journal)-1].Seq {
		t.Errorf("%d in flight at entry %d (%v)", len(shot.InFlight), shot.Entry, err)
	}
	row := signalbox.Schedule{ID: "sched-1", Name: "nightly", Cron: "0 2 * * *"}
	run := signalbox.ScheduleRun{ID: "at-1", Status: signalbox.RunFiring}
	if _, err := s.PutSchedule(context.Background(), row, []signalbox.ScheduleRun{run}, signalbox.Entry{Kind: signalbox.EventScheduleChanged, Schedule: "nightly"}); err != nil {
		t.Fatal(err)
	}
	if open, err := s.OpenRuns(context.Background()); err != nil || len(open) != 1 || open[0].ScheduleID != "sched-1" {
		t.Errorf("open runs %+v (%v)", open, err)
	}
	mustSubmit(t, s)
	exact(t, s)
}

// lifeGoesOn takes what an older file left in flight to its end.
func lifeGoesOn(t *testing.T, s *Store) {
	t.Helper()
	flying, err := s.InFlight(context.Background())
	if err != nil || len(flying) != 1 {
		t.Fatalf("%d in flight (%v), want 1", len(flying), err)
	}
	stopped, err := apply(s, flying[0], signalbox.Event{Kind: signalbox.EventStop, Reason: signalbox.ReasonStalled, Message: "quiet"})
	if err != nil {
		t.Fatal(err)
	}
	ended, err := apply(s, stopped, signalbox.Event{Kind: signalbox.EventFinish, Reason: signalbox.ReasonCancelled})
	if err != nil || ended.Reason != signalbox.ReasonStalled || ended.Message != "quiet" {
		t.Errorf("ended %s %q (%v)", ended.Reason, ended.Message, err)
	}
	if next, err := s.Task(context.Background(), "queue-a5"); err != nil || !next.Ready {
		t.Errorf("the next turn is %+v (%v), want it ready", next, err)
	}
	exact(t, s)
}

func TestOlderFileIsBroughtUpToDate(t *testing.T) {
	path := filepath.Join(t.TempDir(), "x.db")
	old, err := Open(context.Background(), Options{Path: path})
	if err != nil {
		t.Fatal(err)
	}
	task := mustSubmit(t, old)
	id := old.Info().ID
	if err := old.Close(); err != nil {
		t.Fatal(err)
	}
	s := openTest(t, Options{Path: path, migrations: later(`ALTER TABLE tasks ADD COLUMN colour TEXT`, `CREATE TABLE notes(a)`)})
	if got := s.Info(); got.Schema != len(migrations)+1 || got.ID != id {
		t.Errorf("%+v", got)
	}
	if got, err := s.Task(context.Background(), task.ID); err != nil || got != task {
		t.Errorf("task %+v (%v)", got, err)
	}
}

func TestNewFileGoesThroughAllSteps(t *testing.T) {
	s := openTest(t, Options{migrations: later(`CREATE TABLE notes(a)`)})
	if s.Info().Schema != len(migrations)+1 {
		t.Errorf("%+v", s.Info())
	}
	mustSubmit(t, s)
}

func TestNewerFileIsRefused(t *testing.T) {
	path := filepath.Join(t.TempDir(), "x.db")
	s, err := Open(context.Background(), Options{Path: path, migrations: later(`CREATE TABLE notes(a)`)})
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	refused(t, path, "newer version", fmt.Sprintf("schema %d", len(migrations)+1), "not touched")
}

func TestStepThatFailsLeavesTheFileAsItWas(t *testing.T) {
	path := made(t)
	_, err := Open(context.Background(), Options{Path: path, migrations: later(`CREATE TABLE notes(a)`, `CREATE TABLE tasks(a)`)})
	said := fmt.Sprintf("from schema %d to %d", len(migrations), len(migrations)+1)
	if signalbox.CodeOf(err) != signalbox.CodeStoreFailed || !strings.Contains(err.Error(), said) {
		t.Fatalf("got %v", err)
	}
	s := openTest(t, Options{Path: path})
	if got := s.Info().Schema; got != len(migrations) {
		t.Errorf("schema %d, want %d", got, len(migrations))
	}
	if got := s.board.counts().Pending; got != 100 {
		t.Errorf("%d tasks wait, want 100", got)
	}
}
