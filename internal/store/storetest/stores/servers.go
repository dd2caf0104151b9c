package stores

import (
	"context"
	"fmt"
	"os"
	"sync"

	"github.com/signalbox-ai/signalbox/internal/store"
	"github.com/signalbox-ai/signalbox/internal/store/postgres"
	"github.com/signalbox-ai/signalbox/internal/store/redis"
	"github.com/signalbox-ai/signalbox/internal/store/verbs"
	"github.com/signalbox-ai/signalbox/internal/testserver"
)

// Each server is started for the first test that needs it, and ends with the process.
var (
	postgresServer = sync.OnceValue(func() *testserver.PostgresServer {
		return testserver.NewPostgres(life{}, testserver.PostgresOptions{Folder: inMemory()})
	})
	redisServer = sync.OnceValue(func() *testserver.RedisServer {
		return testserver.NewRedis(life{}, testserver.RedisOptions{Folder: inMemory()})
	})
)

// inMemory is a folder in memory if the system has one: no test here is about the disk.
func inMemory() string {
	const shared = "/dev/shm"
	if _, err := os.Stat(shared); err != nil {
		return ""
	}
	return shared
}

// schemas are schemas of one database, since a database takes ten times as long to create.
var schemas = sync.OnceValue(func() *testserver.Schemas {
	return &testserver.Schemas{Server: postgresServer(), Database: "postgres", Keep: "migrations"}
})

func openPostgres(processes int) (store.Store, error) {
	schema := schemas().Borrow()
	s, err := openEach(processes, func() (verbs.SharedBackend, error) {
		return postgres.Open(context.Background(), postgres.Options{URL: schema.URL + "&pool_max_conns=2"})
	})
	if err != nil {
		return nil, err
	}
	s.leave = schema.Return
	return s, nil
}

func openRedis(processes int) (store.Store, error) {
	address := redisServer().Prefix()
	s, err := openEach(processes, func() (verbs.SharedBackend, error) {
		return redis.Open(context.Background(), redis.Options{URL: address})
	})
	if err != nil {
		return nil, err
	}
	return s, nil // not s itself after an error, since a nil *store in an interface is not nil
}

// several is a store that several processes have open.
type several struct {
	leaving
	processes []store.Store
}

func (s *several) Process(n int) store.Store { return s.processes[n%len(s.processes)] }

// Close closes the store in all processes.
func (s *several) Close() error {
	for _, p := range s.processes[1:] {
		if err := p.Close(); err != nil {
			return err
		}
	}
	return s.leaving.Close()
}

func openEach(processes int, open func() (verbs.SharedBackend, error)) (*several, error) {
	s := &several{leaving: leaving{leave: func() error { return nil }}}
	for range processes {
		backend, err := open()
		if err != nil {
			return nil, err
		}
		p, err := verbs.NewShared(context.Background(), backend, verbs.Options{})
		if err != nil {
			return nil, err
		}
		s.processes = append(s.processes, p)
	}
	s.Store = s.processes[0]
	return s, nil
}

// life is a testing.TB that lasts as long as the process.
type life struct{}

func (life) Helper()                           {}
func (life) Cleanup(func())                    {}
func (life) Logf(string, ...any)               {}
func (life) Errorf(format string, args ...any) { panic(fmt.Sprintf(format, args...)) }
func (life) Fatalf(format string, args ...any) { panic(fmt.Sprintf(format, args...)) }
