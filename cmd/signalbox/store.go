package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/api"
	"github.com/signalbox-ai/signalbox/internal/config"
	"github.com/signalbox-ai/signalbox/internal/filelock"
	"github.com/signalbox-ai/signalbox/internal/port"
	"github.com/signalbox-ai/signalbox/internal/seal"
	"github.com/signalbox-ai/signalbox/internal/store"
	"github.com/signalbox-ai/signalbox/internal/store/memory"
	"github.com/signalbox-ai/signalbox/internal/store/postgres"
	"github.com/signalbox-ai/signalbox/internal/store/redis"
	"github.com/signalbox-ai/signalbox/internal/store/sqlite"
	"github.com/signalbox-ai/signalbox/internal/store/verbs"
)

// openStore opens the store that the configuration names. This is the one
// place that knows which stores there are.
func openStore(ctx context.Context, cfg config.Config, log *slog.Logger) (store.Store, error) {
	kind, rest, _ := strings.Cut(cfg.Store, ":")
	switch kind {
	case "sqlite":
		s, err := sqlite.Open(ctx, sqlite.Options{Path: databasePath(cfg.Data, rest), Key: rowKey(cfg.Data), Log: log})
		if err != nil {
			return nil, err // not s: a nil *Store would be a Store that is not nil
		}
		return hookStore(s), nil
	case "memory":
		return memory.New(memory.Options{ID: "memory"}), nil
	}
	backend, err := openBackend(ctx, kind, cfg.Store, log)
	if err != nil {
		return nil, err
	}
	s, err := verbs.NewShared(ctx, backend, verbs.Options{Log: log})
	if err != nil {
		return nil, err
	}
	return s, nil
}

// rowKey gives the key of the rows' sums, which is made of the data folder's.
func rowKey(data string) func() ([]byte, error) {
	return func() ([]byte, error) {
		sealer, err := seal.Load(data, os.Getenv(seal.EnvKey))
		if err != nil {
			return nil, err
		}
		return sealer.RowKey(), nil
	}
}

// openBackend connects to the server that several directors can share.
func openBackend(ctx context.Context, kind, url string, log *slog.Logger) (verbs.SharedBackend, error) {
	switch kind {
	case "postgres", "postgresql":
		return postgres.Open(ctx, postgres.Options{URL: url, Log: log})
	case "redis", "rediss":
		return redis.Open(ctx, redis.Options{URL: url, Log: log})
	}
	return nil, fmt.Errorf("there is no store %q: use sqlite: (the default), sqlite:FILE, postgres://…, redis://…, or memory: for a trial that keeps nothing", kind)
}

// databasePath is where the database file is: what stands behind sqlite:, else
// a file in the data folder.
func databasePath(data, rest string) string {
	rest = cmp.Or(rest, "signalbox.db")
	if filepath.IsAbs(rest) {
		return rest
	}
	return filepath.Join(data, rest)
}

// dataLock keeps a data folder to one director. Over a store of its own the
// store's file does that; over one that directors share nothing else would: two
// would write one key file, one ledger of runs and one list of children.
type dataLock struct{ f *os.File }

const lockName = "director.lock"

func lockData(dir string) (*dataLock, error) {
	path := filepath.Join(dir, lockName)
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, fmt.Errorf("data folder: %w", err)
	}
	err = filelock.Take(f)
	if errors.Is(err, filelock.ErrHeld) {
		defer f.Close()
		who := filelock.Holder(f, "another director")
		return nil, fmt.Errorf("the data folder %s is that of %s, which runs: give each director a folder of its own with --data, or stop that one first", dir, who)
	}
	if err == nil {
		err = filelock.Sign(f)
	}
	if err != nil {
		f.Close()
		return nil, fmt.Errorf("data folder: lock %s: %w", path, err)
	}
	return &dataLock{f}, nil
}

// release gives the folder to the next one.
func (l *dataLock) release() {
	if l != nil {
		_ = l.f.Close() // the lock goes with it
	}
}

// noteOlderQueues says how tasks are taken over that another queue may have left
// where this director has its data or its store: its names of the variables are
// taken, its tasks are not.
func noteOlderQueues(ctx context.Context, cfg config.Config, have store.Reader, log *slog.Logger) {
	left := 0
	for _, folder := range []string{"pending", "dispatched"} {
		files, _ := filepath.Glob(filepath.Join(cfg.Data, folder, "*.json"))
		left += len(files)
	}
	if left > 0 {
		log.Warn("the data folder has tasks of another work queue, which are not taken by themselves: signalbox import takes them",
			"tasks", left, "command", "signalbox import "+cfg.Data)
	}
	if strings.HasPrefix(cfg.Store, "redis:") || strings.HasPrefix(cfg.Store, "rediss:") {
		noteOlderExecutions(ctx, cfg, have, log)
	}
}

// olderQueuesTime bounds the look for executions in Redis.
const olderQueuesTime = 2 * time.Second

// noteOlderExecutions looks in the Redis of the store for executions of another
// queue that were not imported. A look that comes to no end hinders nothing.
func noteOlderExecutions(ctx context.Context, cfg config.Config, have store.Reader, log *slog.Logger) {
	ctx, cancel := context.WithTimeout(ctx, olderQueuesTime)
	defer cancel()
	command := "signalbox import redis://… (the URL of the store)"
	if u, err := url.Parse(cfg.Store); cfg.Origin("store") == "REDIS_URL" {
		command = `signalbox import "$REDIS_URL"`
	} else if err == nil {
		command = "signalbox import " + u.Redacted()
	}
	key, err := port.LeftInRedis(ctx, cfg.Store, func(t *api.ExportedTask) (bool, error) {
		_, err := have.ByKey(ctx, t.Key)
		if signalbox.CodeOf(err) == signalbox.CodeNotFound {
			return false, nil
		}
		return true, err
	})
	switch {
	case key != "":
		log.Warn("the Redis of the store has tasks of another execution queue, which are not taken by themselves: signalbox import takes them",
			"key", key, "command", command)
	case err != nil:
		log.Info("whether another execution queue has left tasks in the Redis of the store could not be found out; signalbox import takes them",
			"error", err, "command", command)
	}
}
