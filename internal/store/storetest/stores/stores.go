// Package stores opens a store of each kind, for tests that must hold for all of them: the random histories,
// and the suite of the engine.
package stores

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/signalbox-ai/signalbox/internal/store"
	"github.com/signalbox-ai/signalbox/internal/store/memory"
	"github.com/signalbox-ai/signalbox/internal/store/sqlite"
)

// Kinds are the kinds of stores, as in Info.Kind. The first one needs no server and no file.
var Kinds = []string{"memory", "sqlite", "postgres", "redis"}

// Open opens a new, empty store of a kind. The caller closes it.
func Open(t testing.TB, kind string) store.Store {
	t.Helper()
	return openBy(t, kind, 1)
}

// OpenTwice opens a store in two processes, as a storetest.Several, if its kind can be shared; else it is
// Open.
func OpenTwice(t testing.TB, kind string) store.Store {
	t.Helper()
	return openBy(t, kind, 2)
}

func openBy(t testing.TB, kind string, processes int) store.Store {
	t.Helper()
	s, err := open(kind, processes)
	if err != nil {
		t.Fatalf("open a store of the kind %s: %v", kind, err)
	}
	if got := s.Info().Kind; got != kind {
		t.Fatalf("a store of the kind %s says that it is %s", kind, got)
	}
	return s
}

func open(kind string, processes int) (store.Store, error) {
	switch kind {
	case "memory":
		return memory.New(memory.Options{}), nil
	case "sqlite":
		return openSQLite()
	case "postgres":
		return openPostgres(processes)
	case "redis":
		return openRedis(processes)
	}
	return nil, fmt.Errorf("there are stores of the kinds %v", Kinds)
}

func openSQLite() (store.Store, error) {
	dir, err := os.MkdirTemp(inMemory(), "signalbox-test-")
	if err != nil {
		return nil, err
	}
	s, err := sqlite.Open(context.Background(), sqlite.Options{Path: filepath.Join(dir, "signalbox.db")})
	if err != nil {
		return nil, err
	}
	return leaving{s, func() error { return os.RemoveAll(dir) }}, nil
}

// leaving is a store that removes its data when it is closed.
type leaving struct {
	store.Store
	leave func() error
}

// Close closes the store and removes its data.
func (l leaving) Close() error {
	if err := l.Store.Close(); err != nil {
		return err
	}
	return l.leave()
}
