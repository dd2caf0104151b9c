package main

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"

	"github.com/signalbox-ai/signalbox/internal/config"
	"github.com/signalbox-ai/signalbox/internal/seal"
	"github.com/signalbox-ai/signalbox/internal/serve/hook"
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
		return hook.Store(s), nil
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
