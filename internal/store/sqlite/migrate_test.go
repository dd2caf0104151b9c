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

// schema1File makes the file that version 1 of the schema left, from a dump of
// one that was written before there was a version 2.
func schema1File(t *testing.T) string {
	t.Helper()
	dump, err := os.ReadFile(filepath.Join("testdata", "schema1.sql"))
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "x.db")
	c, err := openConn(path, sqlite.OpenReadWrite|sqlite.OpenCreate)
	if err != nil {
		t.Fatal(err)
	}
	steps := strings.SplitAfter(string(dump), ";\n")
	steps = append(steps, "PRAGMA application_id = "+strconv.Itoa(applicationID), "PRAGMA user_version = 1", "PRAGMA journal_mode = WAL")
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

// reads is what a file of version 1 held, as that version read it.
type reads struct {
	Tasks    []signalbox.Task
	Requests []signalbox.Request // without what was sealed
	Results  []signalbox.Result
	Slots    []signalbox.Slot
	Agents   []signalbox.Agent
	Pauses   []signalbox.Pause
	Journal  []signalbox.Entry
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
	text, err := os.ReadFile(filepath.Join("testdata", "schema1.json"))
	if err != nil {
		t.Fatal(err)
	}
	var want reads
	if err := json.Unmarshal(text, &want); err != nil {
		t.Fatal(err)
	}
	s := openTest(t, Options{Path: schema1File(t)})
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
