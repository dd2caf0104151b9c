package sqlite

import (
	"context"
	"path/filepath"
	"strings"
	"testing"

	"github.com/signalbox-ai/signalbox"
)

// later is a step that a newer version could have.
func later(version int, sql ...string) []migration {
	return append(append([]migration(nil), migrations...), migration{version, sql})
}

func TestStepsAreNumberedWithoutGaps(t *testing.T) {
	for i, m := range migrations {
		if m.version != i+1 {
			t.Errorf("step %d has the number %d", i+1, m.version)
		}
	}
}

func TestOlderFileIsBroughtUpToDate(t *testing.T) {
	for from := range migrations {
		path := filepath.Join(t.TempDir(), "x.db")
		old, err := Open(context.Background(), Options{Path: path, migrations: migrations[:from+1]})
		if err != nil {
			t.Fatal(err)
		}
		task := mustSubmit(t, old)
		id := old.Info().ID
		if err := old.Close(); err != nil {
			t.Fatal(err)
		}
		s := openTest(t, Options{Path: path, migrations: later(len(migrations)+1, `ALTER TABLE tasks ADD COLUMN colour TEXT`, `CREATE TABLE notes(a)`)})
		if got := s.Info(); got.Schema != len(migrations)+1 || got.ID != id {
			t.Errorf("from %d: %+v", from+1, got)
		}
		if got, err := s.Task(context.Background(), task.ID); err != nil || got != task {
			t.Errorf("from %d: task %+v (%v)", from+1, got, err)
		}
	}
}

func TestNewFileGoesThroughAllSteps(t *testing.T) {
	s := openTest(t, Options{migrations: later(2, `CREATE TABLE notes(a)`)})
	if s.Info().Schema != 2 {
		t.Errorf("%+v", s.Info())
	}
	mustSubmit(t, s)
}

func TestNewerFileIsRefused(t *testing.T) {
	path := filepath.Join(t.TempDir(), "x.db")
	s, err := Open(context.Background(), Options{Path: path, migrations: later(2, `CREATE TABLE notes(a)`)})
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	refused(t, path, "newer version", "schema 2", "not touched")
}

func TestStepThatFailsLeavesTheFileAsItWas(t *testing.T) {
	path := made(t)
	_, err := Open(context.Background(), Options{Path: path, migrations: later(2, `CREATE TABLE notes(a)`, `CREATE TABLE tasks(a)`)})
	if signalbox.CodeOf(err) != signalbox.CodeStoreFailed || !strings.Contains(err.Error(), "from schema 1 to 2") {
		t.Fatalf("got %v", err)
	}
	s := openTest(t, Options{Path: path})
	if got := s.Info().Schema; got != 1 {
		t.Errorf("schema %d, want 1", got)
	}
	if got := s.board.counts().Pending; got != 100 {
		t.Errorf("%d tasks wait, want 100", got)
	}
}
