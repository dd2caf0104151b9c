package main

import (
	"crypto/sha256"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	zombiezen "zombiezen.com/go/sqlite"
	"zombiezen.com/go/sqlite/sqlitex"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/internal/config"
	"github.com/signalbox-ai/signalbox/internal/seal"
	"github.com/signalbox-ai/signalbox/internal/store"
	"github.com/signalbox-ai/signalbox/internal/store/sqlite"
)

// stopped returns the data folder of a stopped director with two waiting tasks.
func stopped(t *testing.T) (config.Config, *sqlite.Store) {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "data")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	if _, err := seal.Load(dir, ""); err != nil {
		t.Fatal(err)
	}
	s, err := sqlite.Open(t.Context(), sqlite.Options{Path: filepath.Join(dir, "signalbox.db"), Key: rowKey(dir)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	for _, id := range []string{"queue-00000000000000000000000001", "queue-00000000000000000000000002"} {
		task := signalbox.Task{ID: id, State: signalbox.Pending, Queue: "work", Limit: "work", Source: signalbox.SourceCLI, MaxAttempts: 3, CreatedAt: time.Now()}
		if _, err := s.Submit(t.Context(), store.Submission{Task: task, Request: signalbox.Request{Prompt: strings.Repeat("x", 20_000)}, Now: time.Now()}); err != nil {
			t.Fatal(err)
		}
	}
	return config.Config{Data: dir, Store: "sqlite:", Addr: "127.0.0.1:0"}, s
}

// says runs examine and returns its findings, one per line. It fails the test if the
// folder changed.
func says(t *testing.T, cfg config.Config) string {
	t.Helper()
	before := folderSum(t, cfg.Data)
	var out []string
	for _, c := range all().Examine(t.Context(), cfg) {
		if (c.Cure == "") != (c.State == "ok") {
			t.Errorf("%+v: want a cure unless it is ok", c)
		}
		out = append(out, c.State+" "+c.Area+": "+c.Text)
	}
	if after := folderSum(t, cfg.Data); after != before {
		t.Errorf("the look changed the data folder:\n%s\n%s", before, after)
	}
	return strings.Join(out, "\n")
}

func folderSum(t *testing.T, dir string) string {
	t.Helper()
	var out strings.Builder
	files, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		data, err := os.ReadFile(filepath.Join(dir, f.Name()))
		if err != nil {
			t.Fatal(err)
		}
		sum := sha256.Sum256(data)
		out.WriteString(f.Name() + " " + string(rune('a'+sum[0]%26)) + string(rune('a'+sum[1]%26)) + string(rune('a'+sum[2]%26)) + "\n")
	}
	return out.String()
}

func wantSaid(t *testing.T, got string, parts ...string) {
	t.Helper()
	for _, part := range parts {
		if !strings.Contains(got, part) {
			t.Errorf("want %q in\n%s", part, got)
		}
	}
}

// plant changes a row directly in the database.
func plant(t *testing.T, cfg config.Config, sql string) {
	t.Helper()
	conn, err := zombiezen.OpenConn(filepath.Join(cfg.Data, "signalbox.db"), zombiezen.OpenReadWrite)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if err := sqlitex.ExecuteTransient(conn, sql, nil); err != nil || conn.Changes() == 0 {
		t.Fatalf("%s: %d rows, %v", sql, conn.Changes(), err)
	}
}

const wellRows = "ok store: its rows agree"

// Inconsistent rows of a stopped director are found without a running director.
func TestDoctorFindsABreachWithoutADirector(t *testing.T) {
	cfg, s := stopped(t)
	if got := says(t, cfg); !strings.Contains(got, "is open, by a director that checks it itself") {
		t.Errorf("a database in use was looked at:\n%s", got)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if got := says(t, cfg); strings.Contains(got, "fail ") {
		t.Errorf("all is well, and it says\n%s", got)
	} else {
		wantSaid(t, got, "sqlite, schema", "durability disk:", wellRows, "ok store: every page of", "ok data: the data folder", "secrets are encrypted with "+seal.KeyFile)
	}
	plant(t, cfg, `INSERT INTO slots(agent, slot, task, fence, withheld) VALUES('coder', 0, 'queue-gone', 7, 0)`)
	wantSaid(t, says(t, cfg), "fail store: slot 0 of agent coder is held by task queue-gone, which does not run")
	plant(t, cfg, `DELETE FROM slots`)
	plant(t, cfg, `UPDATE tasks SET state = 3 WHERE id = 'queue-00000000000000000000000001'`)
	wantSaid(t, says(t, cfg), "fail store: the row of task queue-00000000000000000000000001 is damaged, and set aside: its state is not the one that was written")
	plant(t, cfg, `UPDATE requests SET body = substr(body, 1, 50) || 'y' || substr(body, 52) WHERE seq = 2`)
	wantSaid(t, says(t, cfg), "fail store: the row of task queue-00000000000000000000000002 is damaged, and set aside: what was asked for is not what was written")
}

// An overwritten page is found, and the file is not changed.
func TestDoctorFindsDamageWithoutADirector(t *testing.T) {
	cfg, s := stopped(t)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(cfg.Data, "signalbox.db")
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	info, err := f.Stat()
	if err != nil {
		t.Fatal(err)
	}
	for at := int64(8192); at+4096 <= info.Size(); at += 4096 {
		if _, err := f.WriteAt([]byte(strings.Repeat("?", 64)), at); err != nil {
			t.Fatal(err)
		}
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	wantSaid(t, says(t, cfg), "fail store: ")
	if err := os.Truncate(path, 5000); err != nil {
		t.Fatal(err)
	}
	wantSaid(t, says(t, cfg), "fail store: "+path+" is damaged: it was cut off")
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	wantSaid(t, says(t, cfg), "ok store: "+path+" does not exist yet: a director creates it")
	if err := os.Remove(filepath.Join(cfg.Data, seal.KeyFile)); err != nil {
		t.Fatal(err)
	}
	wantSaid(t, says(t, cfg), "fail data: the key that encrypts secrets cannot be read")
}

// A used port is reported, because a director could not start. A store in memory is
// reported as such and not examined.
func TestDoctorFindsATakenPort(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Setenv("SIGNALBOX_HOME", t.TempDir())
	cfg := config.Config{Data: filepath.Join(t.TempDir(), "none"), Store: "memory:", Addr: l.Addr().String()}
	got := all().Examine(t.Context(), cfg)
	if len(got) != 2 || got[0].State != "fail" || !strings.Contains(got[0].Text, l.Addr().String()+" is taken by another program") {
		t.Errorf("%+v", got)
	}
	l.Close()
	if got := all().Examine(t.Context(), cfg); len(got) != 2 || got[0].State != "ok" || got[1].State != "warn" || !strings.HasPrefix(got[1].Text, "memory: nothing outlives") {
		t.Errorf("%+v", got)
	}
}
