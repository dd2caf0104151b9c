package doctor

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/api"
	"github.com/signalbox-ai/signalbox/internal/store"
)

// Server reports the guarantees of a store's server, without a check of its rows: a director, perhaps on
// another host, checks those.
func Server(info store.Info, err error) []api.Check {
	if err != nil {
		return []api.Check{failure(areaStore, "see that the server runs and is set as it says", "%s", message(err))}
	}
	schema := fmt.Sprintf("schema %d", info.Schema)
	if info.Schema == 0 {
		schema = "no store in it yet"
	}
	text := fmt.Sprintf("%s, %s, durability %s: %s", info.Kind, schema, info.Grade, info.Durability)
	if info.Grade == store.GradeWeak {
		return []api.Check{failure(areaStore, "set the server as it says; docs/scaling.md has the settings", "%s", text)}
	}
	return []api.Check{fine(areaStore, "%s; a director checks its rows", text)}
}

// Memory is the check of a store in memory.
func Memory() []api.Check {
	return []api.Check{warning(areaStore, "start the director with --store sqlite:", "memory: nothing outlives the director")}
}

// message is an error without what is only for logs.
func message(err error) string {
	if own, ok := errors.AsType[*signalbox.Error](err); ok {
		return own.Message
	}
	return err.Error()
}

// Database is a database file that no director has open, and how to read it.
type Database struct {
	Path string
	// Copy copies the file to a folder. The error is InUse if a director has it open.
	Copy  func(ctx context.Context, path, folder string) (string, error)
	InUse error
	// Open opens a copy. fatal is called with an error after which it is unusable.
	Open func(ctx context.Context, path string, fatal func(error)) (OpenDatabase, error)
	// Verify reads all pages of a copy that is closed.
	Verify func(ctx context.Context, path string) error
}

// OpenDatabase is a store that can check the checksums of all its rows.
type OpenDatabase interface {
	store.Store
	Examine(ctx context.Context) (tasks int, err error)
}

// maxCopied is the size above which a database is not copied for a check.
const maxCopied = 4 << 30

// Look checks a copy of the database, so that the file itself is not changed.
func (d Database) Look(ctx context.Context) []api.Check {
	const space = "make room there, or set TMPDIR"
	one := func(c api.Check) []api.Check { return []api.Check{c} }
	info, err := os.Stat(d.Path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return one(fine(areaStore, "%s does not exist yet: a director creates it", d.Path))
	case err != nil:
		return one(failure(areaStore, "give it back to the user of the director", "%v", err))
	case info.Size() > maxCopied:
		return one(warning(areaStore, "start a director, and ask it: signalbox doctor", "%s has %d GiB, too large to copy for a check", d.Path, info.Size()>>30))
	}
	work, err := os.MkdirTemp("", "signalbox-doctor-*")
	if err != nil {
		return one(warning(areaStore, space, "there is no room for a copy of %s: %v", d.Path, err))
	}
	defer os.RemoveAll(work) //nolint:errcheck // a temporary folder
	if v, err := volumeOf(work); err == nil && v.free < 2*info.Size()+(64<<20) {
		return one(warning(areaStore, space, "there is no room in %s for a copy of %s", filepath.Dir(work), d.Path))
	}
	copied, err := d.Copy(ctx, d.Path, work)
	switch {
	case errors.Is(err, d.InUse):
		return one(fine(areaStore, "%s is open, by a director that checks it itself: ask that one with --director", d.Path))
	case err != nil:
		return one(failure(areaStore, "give it back to the user of the director, or see the disk", "%s cannot be read: %s", d.Path, message(err)))
	}
	return d.lookAt(ctx, copied)
}

func (d Database) lookAt(ctx context.Context, copied string) []api.Check {
	damage := func(format string, args ...any) api.Check {
		return failure(areaStore, "keep a copy of the file and of its -wal, and restore the backup", format, args...)
	}
	original := func(err error) string { return strings.ReplaceAll(message(err), copied, d.Path) }
	var fatal error
	s, err := d.Open(ctx, copied, func(err error) { fatal = err })
	if err != nil {
		return []api.Check{damage("%s", original(err))}
	}
	info := s.Info()
	out := []api.Check{fine(areaStore, "%s: %s, schema %d, durability %s: %s", d.Path, info.Kind, info.Schema, info.Grade, info.Durability)}
	tasks, err := s.Examine(ctx)
	out = append(out, Store(s, nil)(ctx, true)...)
	if err = errors.Join(err, s.Close(), fatal); err != nil {
		out = append(out, damage("%s", original(err)))
	}
	if err := d.Verify(ctx, copied); err != nil {
		return append(out, damage("%s: %s", d.Path, message(err)))
	}
	return append(out, fine(areaStore, "every page of %s can be read and its structure is sound; the checksums of %d tasks match", d.Path, tasks))
}
