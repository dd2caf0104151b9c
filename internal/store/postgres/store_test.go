package postgres_test

import (
	"context"
	"fmt"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/signalbox-ai/signalbox/internal/store"
	"github.com/signalbox-ai/signalbox/internal/store/postgres"
	"github.com/signalbox-ai/signalbox/internal/store/storetest"
	"github.com/signalbox-ai/signalbox/internal/store/verbs"
	"github.com/signalbox-ai/signalbox/internal/testserver"
)

// open opens a store.
func open(t *testing.T, url string) store.Store {
	t.Helper()
	backend, err := postgres.Open(context.Background(), postgres.Options{URL: url})
	if err != nil {
		t.Fatal(err)
	}
	s, err := verbs.NewShared(context.Background(), backend, verbs.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

var schemas atomic.Int64

// schema returns the address of a new, empty schema in a database.
func schema(database string) string {
	return fmt.Sprintf("%s&schema=s%d&pool_max_conns=2", database, schemas.Add(1))
}

// The server sorts text by a natural language, if it can; ids and queues are sorted by their bytes all the
// same.
func TestContract(t *testing.T) {
	s := testserver.NewPostgres(t, testserver.PostgresOptions{})
	schemas := &testserver.Schemas{Server: s, Database: "words", Keep: "migrations"}
	err := s.Exec("postgres", "CREATE DATABASE words TEMPLATE template0 LOCALE_PROVIDER icu ICU_LOCALE 'en-US' ENCODING 'UTF8'")
	if err != nil { // before version 15, or built without ICU
		if err := s.Exec("postgres", "CREATE DATABASE words"); err != nil {
			t.Fatal(err)
		}
	}
	storetest.Run(t, func(t *testing.T) store.Store {
		schema := schemas.Borrow()
		t.Cleanup(func() { // after the suite has closed the store
			if err := schema.Return(); err != nil {
				t.Error(err)
			}
		})
		return open(t, schema.URL+"&pool_max_conns=2")
	})
}

// A folder is mapped to a schema.
func TestDurable(t *testing.T) {
	database := testserver.Postgres(t)
	var known sync.Map
	storetest.RunDurable(t, func(t *testing.T, dir string) store.Store {
		url, _ := known.LoadOrStore(filepath.Clean(dir), schema(database))
		return open(t, url.(string))
	})
}
