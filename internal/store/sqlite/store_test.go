package sqlite_test

import (
	"context"
	"os"
	"path/filepath"
	"testing"

	"github.com/signalbox-ai/signalbox/internal/soak"
	"github.com/signalbox-ai/signalbox/internal/store"
	"github.com/signalbox-ai/signalbox/internal/store/sqlite"
	"github.com/signalbox-ai/signalbox/internal/store/storetest"
	"github.com/signalbox-ai/signalbox/internal/store/storetest/model"
)

// open opens the store of a folder; a fatal error fails the test.
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

// The contract is not about the disk, unlike TestDurable and the tests that kill processes and break disks.
func TestContract(t *testing.T) {
	folder := inMemory(t)
	storetest.Run(t, func(t *testing.T) store.Store { return open(t, folder(t)) })
}

func TestDurable(t *testing.T) {
	storetest.RunDurable(t, func(t *testing.T, dir string) store.Store { return open(t, dir) })
}

// Random histories must give the same results as on the reference. storetest/stores compares all stores at
// once.
func TestCompareWithMemory(t *testing.T) {
	soak.Histories(t, 4, 5000)
	folder := inMemory(t)
	storetest.Compare(t,
		func(t *testing.T) store.Store { return model.New(model.Options{}) },
		func(t *testing.T) store.Store { return open(t, folder(t)) })
}

// inMemory returns folders in memory, if the system has such a file system.
func inMemory(t *testing.T) (folder func(t *testing.T) string) {
	t.Helper()
	dir, err := os.MkdirTemp("/dev/shm", "signalbox-test-")
	if err != nil {
		dir = t.TempDir()
	}
	t.Cleanup(func() {
		if err := os.RemoveAll(dir); err != nil {
			t.Error(err)
		}
	})
	return func(t *testing.T) string {
		own, err := os.MkdirTemp(dir, "")
		if err != nil {
			t.Fatal(err)
		}
		return own
	}
}
