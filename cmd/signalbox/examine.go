package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/api"
	"github.com/signalbox-ai/signalbox/internal/config"
	"github.com/signalbox-ai/signalbox/internal/doctor"
	"github.com/signalbox-ai/signalbox/internal/seal"
	"github.com/signalbox-ai/signalbox/internal/serve"
	"github.com/signalbox-ai/signalbox/internal/serve/director"
	"github.com/signalbox-ai/signalbox/internal/store"
	"github.com/signalbox-ai/signalbox/internal/store/postgres"
	"github.com/signalbox-ai/signalbox/internal/store/redis"
	"github.com/signalbox-ai/signalbox/internal/store/sqlite"
)

// examineTime bounds a look without a director.
const examineTime = time.Minute

// mostCopied bounds the database that is copied to be looked at.
const mostCopied = 4 << 30

// examine is doctor where no director answers: the address it would listen at,
// the data folder and the store. It writes nothing but a copy of the database,
// elsewhere.
func examine(ctx context.Context, cfg config.Config) []api.Check {
	ctx, cancel := context.WithTimeout(ctx, examineTime)
	defer cancel()
	out := examineAddr(ctx, cfg)
	if _, err := os.Stat(cfg.Data); err == nil {
		folder := director.DataFolder(cfg)
		folder.Untouched = true
		out = append(out, doctor.Data(folder)(ctx, true)...)
	}
	return append(out, examineStore(ctx, cfg)...)
}

func finding(area, state, cure, format string, args ...any) []api.Check {
	return []api.Check{{Area: area, State: state, Text: fmt.Sprintf(format, args...), Cure: cure}}
}

// examineAddr tries whether a director could listen at its address.
func examineAddr(ctx context.Context, cfg config.Config) []api.Check {
	const area = "ports"
	if _, port, err := net.SplitHostPort(cfg.Addr); err != nil || port == "0" {
		return nil
	}
	l, err := serve.Listen(ctx, cfg.Addr)
	if err != nil {
		return finding(area, "fail", "stop what holds it, or give --addr", "a director cannot start: %v", err)
	}
	l.Close()
	return finding(area, "ok", "", "%s is free for a director", cfg.Addr)
}

const areaStore = "store"

func examineStore(ctx context.Context, cfg config.Config) []api.Check {
	kind, rest, _ := strings.Cut(cfg.Store, ":")
	switch kind {
	case "sqlite":
		return examineFile(ctx, cfg.Data, databasePath(cfg.Data, rest))
	case "postgres", "postgresql":
		info, err := postgres.Inspect(ctx, cfg.Store)
		return examined(info, err)
	case "redis", "rediss":
		info, err := redis.Inspect(ctx, cfg.Store)
		return examined(info, err)
	case "memory":
		return finding(areaStore, "warn", "start the director with --store sqlite:", "memory: nothing outlives the director")
	}
	return nil
}

// examined is what a server promises. The rows in it are looked at by a
// director, which may be on another host.
func examined(info store.Info, err error) []api.Check {
	if err != nil {
		return finding(areaStore, "fail", "see that the server runs and is set as it says", "%s", words(err))
	}
	text := fmt.Sprintf("%s, schema %d, durability %s: %s", info.Kind, info.Schema, info.Grade, info.Durability)
	if info.Schema == 0 {
		text = fmt.Sprintf("%s, no store in it yet, durability %s: %s", info.Kind, info.Grade, info.Durability)
	}
	if info.Grade == store.GradeWeak {
		return finding(areaStore, "fail", "set the server as it says; docs/scaling.md has the settings", "%s", text)
	}
	return finding(areaStore, "ok", "", "%s; a director looks at its rows", text)
}

// words is an error without what is for logs only.
func words(err error) string {
	if own, ok := errors.AsType[*signalbox.Error](err); ok {
		return own.Message
	}
	return err.Error()
}

// examineFile looks at a database that no director has open: at a copy of it,
// so that nothing in it changes.
func examineFile(ctx context.Context, data, path string) []api.Check {
	info, err := os.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return finding(areaStore, "ok", "", "%s is not there: a director makes it", path)
	case err != nil:
		return finding(areaStore, "fail", "give it back to the user of the director", "%v", err)
	case info.Size() > mostCopied:
		return finding(areaStore, "warn", "start a director, and ask it: signalbox doctor", "%s has %d GiB, too many to be copied for a look", path, info.Size()>>30)
	}
	work, err := os.MkdirTemp("", "signalbox-doctor-*")
	if err != nil {
		return finding(areaStore, "warn", "make room there, or set TMPDIR", "there is no room for a copy of %s: %v", path, err)
	}
	defer os.RemoveAll(work) //nolint:errcheck // a temporary folder
	if free, ok := doctor.FreeBytes(work); ok && free < 2*info.Size()+(64<<20) {
		return finding(areaStore, "warn", "make room there, or set TMPDIR", "there is no room in %s for a copy of %s", filepath.Dir(work), path)
	}
	taken, err := sqlite.Copy(ctx, path, work)
	if errors.Is(err, sqlite.ErrHeld) {
		return finding(areaStore, "ok", "", "%s is open, by a director that looks at it itself: ask that one with --director", path)
	}
	if err != nil {
		return finding(areaStore, "fail", "give it back to the user of the director, or see the disk", "%s cannot be read: %s", path, words(err))
	}
	return examineCopy(ctx, data, path, taken)
}

const restore = "keep a copy of the file and of its -wal, and bring back the backup"

func examineCopy(ctx context.Context, data, path, taken string) []api.Check {
	var broken error
	o := sqlite.Options{Path: taken, Log: slog.New(slog.DiscardHandler), Fatal: func(err error) { broken = err }, Readers: 2}
	_, missing := os.Stat(filepath.Join(data, seal.KeyFile))
	if missing == nil || os.Getenv(seal.EnvKey) != "" { // else it would be made
		o.Key = rowKey(data)
	}
	s, err := sqlite.Open(ctx, o)
	if err != nil {
		return finding(areaStore, "fail", restore, "%s", strings.ReplaceAll(words(err), taken, path))
	}
	info := s.Info()
	out := finding(areaStore, "ok", "", "%s: sqlite, schema %d, durability %s: %s", path, info.Schema, info.Grade, info.Durability)
	tasks, err := s.Examine(ctx)
	out = append(out, doctor.Store(s, nil)(ctx, true)...)
	if err = errors.Join(err, s.Close(), broken); err != nil {
		out = append(out, finding(areaStore, "fail", restore, "%s", strings.ReplaceAll(words(err), taken, path))...)
	}
	if err := sqlite.Verify(ctx, taken); err != nil {
		return append(out, finding(areaStore, "fail", restore, "%s: %s", path, words(err))...)
	}
	return append(out, finding(areaStore, "ok", "", "every page of %s can be read and its structure is sound; the sums of %d tasks were looked at", path, tasks)...)
}
