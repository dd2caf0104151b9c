package sqlite_test

import (
	"context"
	"path/filepath"
	"testing"

	"github.com/signalbox-ai/signalbox/internal/store"
	"github.com/signalbox-ai/signalbox/internal/store/memory"
	"github.com/signalbox-ai/signalbox/internal/store/sqlite"
	"github.com/signalbox-ai/signalbox/internal/store/storetest"
)

// open opens the store of a folder; what would end the process fails the test.
func open(t *testing.T, dir string) *sqlite.Store {
	t.Helper()
	s, err := sqlite.Open(context.Background(), sqlite.Options{
		Path:  filepath.Join(dir, "signalbox.db"),
		Fatal: func(err error) { t.Errorf("fatal: %v", err) },
	})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestContract(t *testing.T) {
	storetest.Run(t, func(t *testing.T) store.Store { return open(t, t.TempDir()) })
}

func TestDurable(t *testing.T) {
	storetest.RunDurable(t, func(t *testing.T, dir string) store.Store { return open(t, dir) })
}

func TestCompare(t *testing.T) {
	storetest.Compare(t,
		func(t *testing.T) store.Store { return memory.New(memory.Options{}) },
		func(t *testing.T) store.Store { return open(t, t.TempDir()) })
}
