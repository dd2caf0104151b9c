package main

import (
	"context"
	"fmt"
	"log/slog"
	"path/filepath"
	"strings"

	"github.com/signalbox-ai/signalbox/internal/config"
	"github.com/signalbox-ai/signalbox/internal/store"
	"github.com/signalbox-ai/signalbox/internal/store/memory"
	"github.com/signalbox-ai/signalbox/internal/store/sqlite"
)

// openStore opens the store that the configuration names. This is the one
// place that knows which stores there are.
func openStore(ctx context.Context, cfg config.Config, log *slog.Logger) (store.Store, error) {
	kind, rest, _ := strings.Cut(cfg.Store, ":")
	switch kind {
	case "sqlite":
		path := rest
		if path == "" {
			path = "signalbox.db"
		}
		if !filepath.IsAbs(path) {
			path = filepath.Join(cfg.Data, path)
		}
		s, err := sqlite.Open(ctx, sqlite.Options{Path: path, Log: log})
		if err != nil {
			return nil, err // not s: a nil *Store would be a Store that is not nil
		}
		return s, nil
	case "memory":
		return memory.New(memory.Options{ID: "memory"}), nil
	}
	return nil, fmt.Errorf("store %q is not built in yet: use sqlite: (the default), sqlite:FILE, or memory: for a trial that keeps nothing", cfg.Store)
}
