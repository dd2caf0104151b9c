package main

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"

	"github.com/signalbox-ai/signalbox/api"
	"github.com/signalbox-ai/signalbox/internal/config"
	"github.com/signalbox-ai/signalbox/internal/doctor"
	"github.com/signalbox-ai/signalbox/internal/seal"
	"github.com/signalbox-ai/signalbox/internal/serve/hook"
	"github.com/signalbox-ai/signalbox/internal/store"
	"github.com/signalbox-ai/signalbox/internal/store/memory"
	"github.com/signalbox-ai/signalbox/internal/store/postgres"
	"github.com/signalbox-ai/signalbox/internal/store/redis"
	"github.com/signalbox-ai/signalbox/internal/store/sqlite"
	"github.com/signalbox-ai/signalbox/internal/store/verbs"
)

// openStore opens the store that the configuration names.
func openStore(ctx context.Context, cfg config.Config, log *slog.Logger) (store.Store, error) {
	kind, rest, _ := strings.Cut(cfg.Store, ":")
	switch kind {
	case "sqlite":
		s, err := sqlite.Open(ctx, sqlite.Options{Path: databasePath(cfg.Data, rest), Key: rowKey(cfg.Data), Log: log})
		if err != nil {
			return nil, err // not s: a nil *Store in the interface would not be nil
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

// rowKey derives the key of the rows' checksums from the key of the data folder.
func rowKey(data string) func() ([]byte, error) {
	return func() ([]byte, error) {
		sealer, err := seal.Load(data, os.Getenv(seal.EnvKey))
		if err != nil {
			return nil, err
		}
		return sealer.RowKey(), nil
	}
}

// openBackend connects to a store server that several directors can share.
func openBackend(ctx context.Context, kind, url string, log *slog.Logger) (verbs.SharedBackend, error) {
	switch kind {
	case "postgres", "postgresql":
		return postgres.Open(ctx, postgres.Options{URL: url, Log: log})
	case "redis", "rediss":
		return redis.Open(ctx, redis.Options{URL: url, Log: log})
	}
	return nil, fmt.Errorf("there is no store %q: use sqlite: (the default), sqlite:FILE, postgres://…, redis://…, or memory: for a trial that keeps nothing", kind)
}

// databasePath returns the path of the database file: rest, the part after sqlite:, or a
// file in the data folder.
func databasePath(data, rest string) string {
	rest = cmp.Or(rest, "signalbox.db")
	if filepath.IsAbs(rest) {
		return rest
	}
	return filepath.Join(data, rest)
}

// examineStore is doctor's check of the store while no director has it open.
func examineStore(ctx context.Context, cfg config.Config) []api.Check {
	kind, rest, _ := strings.Cut(cfg.Store, ":")
	switch kind {
	case "sqlite":
		return doctor.Database{
			Path: databasePath(cfg.Data, rest), Copy: sqlite.Copy, InUse: sqlite.ErrHeld, Verify: sqlite.Verify,
			Open: func(ctx context.Context, path string, fatal func(error)) (doctor.OpenDatabase, error) {
				o := sqlite.Options{Path: path, Log: slog.New(slog.DiscardHandler), Fatal: fatal, Readers: 2}
				if _, err := os.Stat(filepath.Join(cfg.Data, seal.KeyFile)); err == nil || os.Getenv(seal.EnvKey) != "" { // rowKey would create the key
					o.Key = rowKey(cfg.Data)
				}
				return sqlite.Open(ctx, o)
			},
		}.Look(ctx)
	case "postgres", "postgresql":
		return doctor.Server(postgres.Inspect(ctx, cfg.Store))
	case "redis", "rediss":
		return doctor.Server(redis.Inspect(ctx, cfg.Store))
	case "memory":
		return doctor.Memory()
	}
	return nil
}
