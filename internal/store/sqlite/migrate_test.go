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

// oldFile creates the file of an old version of the schema, from a dump that this version wrote.
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

// reads is what the reads of the old version returned. What a version did not have is empty.
type reads struct {
	Tasks        []signalbox.Task
	Requests     []signalbox.Request // without sealed environments
	Results      []signalbox.Result
	Slots        []signalbox.Slot
	Agents       []signalbox.Agent
	Pauses       []signalbox.Pause
	Journal      []signalbox.Entry
	Sessions     []signalbox.Session
	Stales       []signalbox.Stale // of all tasks
	Tokens       []signalbox.Token
	Users        []signalbox.User
	Audit        []signalbox.Audit
	Schedules    []signalbox.Schedule
	ScheduleRuns []signalbox.ScheduleRun // of the first schedule
	Open         []signalbox.ScheduleRun
	Kept         map[string]int64
}

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

func readsOf(t *testing.T, s *Store, tasks []signalbox.Task) (r reads) {
	t.Helper()
	ctx := context.Background()
	for _, want := range tasks {
		whole, err := s.Whole(ctx, want.ID)
		if err != nil {
			t.Fatal(err)
		}
		if got := string(whole.Request.SealedEnv); (got == "secret") != whole.Task.HasEnv {
			t.Errorf("the environment of %s is %q", want.ID, got)
		}
		whole.Request.SealedEnv = nil
		r.Tasks, r.Requests, r.Results = append(r.Tasks, whole.Task), append(r.Requests, whole.Request), append(r.Results, whole.Result)
		r.Stales = append(r.Stales, whole.Stales...)
	}
	var errs [12]error
	r.Slots, errs[0] = s.Slots(ctx)
	r.Agents, errs[1] = s.Agents(ctx)
	r.Pauses, errs[2] = s.Pauses(ctx)
	r.Journal, errs[3] = s.Journal(ctx, 0, 1000)
	page, err := s.Sessions(ctx, store.SessionQuery{Limit: 1000})
	r.Sessions, errs[4] = page.Sessions, err
	r.Tokens, errs[5] = s.Tokens(ctx)
	r.Users, errs[6] = s.Users(ctx)
	r.Audit, errs[7] = s.AuditLog(ctx, store.AuditQuery{Limit: 1000})
	r.Schedules, errs[8] = s.Schedules(ctx)
	r.ScheduleRuns, errs[9] = s.ScheduleRuns(ctx, "sched-1", 10)
	r.Open, errs[10] = s.OpenRuns(ctx)
	r.Kept, errs[11] = s.Kept(ctx)
	if err := errors.Join(errs[:]...); err != nil {
		t.Fatal(err)
	}
	return r
}

func TestUpgradeKeepsEverything(t *testing.T) {
	for _, from := range []int{1, 2, 3, 5} {
		t.Run(fmt.Sprint("schema", from), func(t *testing.T) {
			want := wanted(t, from)
			s := openTest(t, Options{Path: oldFile(t, from), Key: keyOfAll(7)})
			if got := s.Info().Schema; got != version {
				t.Errorf("schema %d, want %d", got, version)
			}
			if from == 1 { // it only had rows for sessions of accepted tasks
				want.Sessions = []signalbox.Session{firstSession("talk-2", 13), firstSession("talk-1", 3)}
			}
			same(t, "what is read", readsOf(t, s, want.Tasks), want)
			exact(t, s)
			if err := invariant.Check(context.Background(), s); err != nil {
				t.Error(err)
			}
			if damaged, err := s.Damaged(context.Background()); err != nil || len(damaged) > 0 {
				t.Errorf("damaged: %v (%v)", damaged, err)
			}
			lifeGoesOn(t, s)
		})
	}
}

// A file of schema 6 is accepted unchanged, and from then on refused by a program that does not know parked
// tasks.
func TestUpgradeOfSameTables(t *testing.T) {
	path := filepath.Join(t.TempDir(), "x.db")
	s, err := Open(context.Background(), Options{Path: path})
	if err != nil {
		t.Fatal(err)
	}
	task := mustSubmit(t, s)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	c, err := openConn(path, sqlite.OpenReadWrite)
	if err == nil {
		_, err = c.exec("PRAGMA user_version = 6")
	}
	if err := errors.Join(err, c.close()); err != nil {
		t.Fatal(err)
	}
	s = openTest(t, Options{Path: path})
	if got, err := s.Task(context.Background(), task.ID); err != nil || got != task || s.Info().Schema != 7 {
		t.Errorf("%+v, schema %d (%v)", got, s.Info().Schema, err)
	}
	exact(t, s)
	if err := checkVersion(path, 7, 6); signalbox.CodeOf(err) != signalbox.CodeConflict || !strings.Contains(err.Error(), "written by a newer version") {
		t.Errorf("a program that knows 6: %v", err)
	}
}

func firstSession(id string, second int) signalbox.Session {
	at := time.Date(2026, 3, 1, 12, 0, second, 0, time.UTC)
	return signalbox.Session{ID: id, Agent: "a", State: signalbox.SessionActive, Turns: 1, CreatedAt: at, LastUsed: at}
}

// lifeGoesOn submits, and takes tasks in flight of an older file to their end.
func lifeGoesOn(t *testing.T, s *Store) {
	t.Helper()
	ctx, seq := context.Background(), s.backend.totals.Seq
	if task := mustSubmit(t, s); task.Seq != seq+1 {
		t.Errorf("the next task has the number %d, want %d", task.Seq, seq+1)
	}
	flying, err := s.InFlight(ctx)
	if err != nil || len(flying) == 0 {
		t.Fatalf("%d in flight (%v)", len(flying), err)
	}
	for _, task := range flying {
		ended, err := apply(s, task, signalbox.Event{Kind: signalbox.EventRelease})
		if err != nil || !ended.State.Terminal() {
			t.Errorf("%s is %s (%v)", task.ID, ended.State, err)
		}
		if task.SessionID == "" {
			continue
		}
		turns, err := s.SessionTasks(ctx, task.SessionID, 1)
		if err != nil || (len(turns) > 0 && !turns[0].Ready) {
			t.Errorf("the next turn of %s is %+v (%v), want it ready", task.SessionID, turns, err)
		}
	}
	if _, err := s.AppendAudit(ctx, signalbox.Audit{At: clock(), EventType: "auth"}); err != nil {
		t.Error(err)
	}
	row := signalbox.Schedule{ID: "sched-new", Name: "new one"}
	if _, err := s.PutSchedule(ctx, row, []signalbox.ScheduleRun{{ID: "at-9", Status: signalbox.RunFiring}}, signalbox.Entry{}); err != nil {
		t.Error(err)
	}
	exact(t, s)
}

// If a process ends during an upgrade, or the upgrade fails, the file is unchanged.
func TestFailedUpgradeLeavesFileUnchanged(t *testing.T) {
	path := oldFile(t, 5)
	c, err := openConn(path, sqlite.OpenReadWrite)
	if err != nil {
		t.Fatal(err)
	}
	run := func(sql string) {
		if _, err := c.exec(sql); err != nil {
			t.Fatal(err)
		}
	}
	run(`CREATE TABLE damaged(a)`) // the new table cannot be created
	if _, err := Open(context.Background(), Options{Path: path}); signalbox.CodeOf(err) != signalbox.CodeStoreFailed || !strings.Contains(err.Error(), "from schema 5 to 7") {
		t.Fatalf("got %v", err)
	}
	run(`DROP TABLE damaged`)
	for _, rows := range []int{0, 1, 10, 30} {
		gone := &endsAfter{context.Background(), rows}
		if err := c.transaction(func() error { return c.upgrade(gone, 5, nil) }); !errors.Is(err, context.Canceled) {
			t.Errorf("a carrying over that ended after %d rows: %v", rows, err)
		}
	}
	if v, err := c.exec("PRAGMA user_version"); err != nil || v != "5" {
		t.Errorf("version %s (%v), want 5", v, err)
	}
	if err := c.close(); err != nil {
		t.Fatal(err)
	}
	want := wanted(t, 5)
	same(t, "what is read", readsOf(t, openTest(t, Options{Path: path}), want.Tasks), want)
}

// endsAfter is a context that ends after that many calls of Err.
type endsAfter struct {
	context.Context
	looks int
}

func (e *endsAfter) Err() error {
	if e.looks--; e.looks < 0 {
		return context.Canceled
	}
	return nil
}

// A row that the old release could not read is quarantined, and everything else is upgraded.
func TestUpgradeQuarantinesUnreadableRow(t *testing.T) {
	path := oldFile(t, 5)
	c, err := openConn(path, sqlite.OpenReadWrite)
	if err != nil {
		t.Fatal(err)
	}
	for _, sql := range []string{`UPDATE tasks SET state = 77 WHERE id = 'queue-e1'`, `UPDATE requests SET rest = x'ff' WHERE seq = (SELECT seq FROM tasks WHERE id = 'queue-e2')`} {
		if _, err := c.exec(sql); err != nil {
			t.Fatal(err)
		}
	}
	if err := c.close(); err != nil {
		t.Fatal(err)
	}
	s := openTest(t, Options{Path: path})
	got, err := s.Damaged(context.Background())
	if err != nil || len(got) != 2 || got[0].ID != "queue-e1" || got[1].ID != "queue-e2" {
		t.Fatalf("damaged: %v (%v)", got, err)
	}
	exact(t, s)
	lifeGoesOn(t, s)
}

func TestNewerFileIsRefused(t *testing.T) {
	path := made(t)
	c, err := openConn(path, sqlite.OpenReadWrite)
	if err != nil {
		t.Fatal(err)
	}
	for _, sql := range []string{fmt.Sprint("PRAGMA user_version = ", version+1), "PRAGMA wal_checkpoint(TRUNCATE)"} {
		if _, err := c.exec(sql); err != nil {
			t.Fatal(err)
		}
	}
	if err := c.close(); err != nil {
		t.Fatal(err)
	}
	refused(t, path, "newer version", fmt.Sprintf("schema %d", version+1), "not touched")
}
