package doctor

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/signalbox-ai/signalbox/api"
	"github.com/signalbox-ai/signalbox/internal/store"
)

// pause is the delay between two looks at changing rows.
const pause = 100 * time.Millisecond

// looks is how often something must be seen wrong before it is reported. Waiting and running tasks are read
// in one snapshot, but agents, ended tasks, the journal and the audit log are not: a change between two reads
// looks wrong once, but not twice in the same way.
const looks = 3

// Store checks those invariants of the design (§4) that can be checked in a store that is in use; they are
// listed in view.go. It reads the waiting and running tasks, and the newest ended ones, so its cost does not
// grow with the history. now is the clock of the store's leases; nil if no director runs that would renew
// them.
func Store(r store.Reader, now func() time.Time) CheckFunc {
	return func(ctx context.Context, _ bool) []api.Check {
		found, err := seenEachTime(ctx, r, now)
		switch {
		case err != nil && ctx.Err() != nil:
			return []api.Check{failure(areaStore, "see whether the disk is slow or the machine busy", "its rows could not be read in time")}
		case err != nil:
			return []api.Check{failure(areaStore, "see the director's log", "its rows cannot be read")}
		case len(found) == 0:
			return append(lossesOf(r), fine(areaStore, "its rows agree: slots, counts, the order and the one place of each task, ends, journal, audit log"))
		}
		const most = 10
		if more := len(found) - most; more > 0 {
			found = append(found[:most:most], failure(areaStore, keepACopy, "%d more findings in the rows", more))
		}
		return append(lossesOf(r), found...)
	}
}

// lossesOf reports how often a server turned out to have lost acknowledged data. That is no current failure,
// so it only warns.
func lossesOf(r store.Reader) []api.Check {
	shared, ok := r.(store.Shared)
	if !ok || shared.Generation() <= 1 {
		return nil
	}
	return []api.Check{warning(areaStore, "submit again what is missing; see docs/scaling.md for what each store promises",
		"its server has lost what it had acknowledged (generation %d): what was stored shortly before may be gone", shared.Generation())}
}

// seenEachTime returns what every one of several looks finds.
func seenEachTime(ctx context.Context, r store.Reader, now func() time.Time) ([]api.Check, error) {
	var still []api.Check
	for i := range looks {
		found, err := look(ctx, r, now)
		if err != nil {
			return nil, err
		}
		if i == 0 {
			still = found
		} else {
			still = slices.DeleteFunc(still, func(c api.Check) bool { return !slices.Contains(found, c) })
		}
		if len(still) == 0 {
			return nil, nil
		}
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-time.After(pause):
		}
	}
	return still, nil
}

// Free space and free inodes of the data folder below which the check warns and fails.
const (
	little      = 1 << 30
	none        = 64 << 20
	littleNodes = 10_000
	noNodes     = 200
)

// Folder is a data folder and the key in it.
type Folder struct {
	Dir     string
	KeyFile string
	KeyEnv  string // the variable that, if set, has the key instead of the file
	// Database: there is an SQLite file, which needs a file system of this machine.
	Database bool
	// Untouched: do not try to write, since no director runs.
	Untouched bool
}

// Data checks the data folder: whether the director can write there, who else can read it, the free space,
// the kind of disk, and the key that encrypts secrets.
func Data(f Folder) CheckFunc {
	return func(_ context.Context, admin bool) []api.Check {
		name := "the data folder"
		if admin {
			name += " " + f.Dir
		}
		out := []api.Check{f.folder(name)}
		if s, err := volumeOf(f.Dir); err != nil {
			out = append(out, warning(areaData, "see whether its file system is there", "the free space cannot be read: %v", err))
		} else {
			out = append(out, f.disk(name, s)...)
		}
		return append(out, f.key())
	}
}

func (f *Folder) folder(name string) api.Check {
	info, err := os.Stat(f.Dir)
	if err == nil {
		err = f.writable()
	}
	switch {
	case err != nil:
		return failure(areaData, "give it back to the user of the director, or make room", "%s cannot be written: %s", name, plain(err))
	case info.Mode().Perm()&0o022&permBits != 0:
		return failure(areaData, "chmod 700, and check who owns the files in it", "%s can be written by others (mode %#o)", name, info.Mode().Perm())
	case info.Mode().Perm()&0o077&permBits != 0:
		return warning(areaData, "chmod 700", "%s can be read by others (mode %#o)", name, info.Mode().Perm())
	}
	return fine(areaData, "%s can be written, and %s", name, closedToOthers)
}

func (f *Folder) writable() error {
	if f.Untouched {
		return mayWrite(f.Dir)
	}
	file, err := os.CreateTemp(f.Dir, ".doctor-*")
	if err != nil {
		return err
	}
	return errors.Join(file.Close(), os.Remove(file.Name()))
}

// plain is an error without the path, which not every caller may learn.
func plain(err error) string {
	if path, ok := errors.AsType[*fs.PathError](err); ok {
		err = path.Err
	}
	return err.Error()
}

// disk checks the file system of the folder.
func (f *Folder) disk(name string, s volume) []api.Check {
	out := []api.Check{room(name, s.free)}
	if c, bad := inodes(name, s.nodes, s.freeNodes); bad {
		out = append(out, c)
	}
	if s.network != "" && f.Database {
		out = append(out, failure(areaData, "put --data on a disk of this machine, or use --store postgres:// or redis://",
			"%s is on a network file system (%s): SQLite's locks and syncs do not hold there, and two directors may both write", name, s.network))
	}
	return out
}

// volume is the file system of a folder.
type volume struct {
	free             int64
	nodes, freeNodes uint64 // 0, 0: it does not count them
	network          string // its kind, if it is on another machine
}

func room(name string, free int64) api.Check {
	text := fmt.Sprintf("%.1f GiB left on the disk of %s", float64(free)/(1<<30), name)
	const cure = "make room: a full disk refuses every submit"
	switch {
	case free < none:
		return failure(areaData, cure, "%s", text)
	case free < little:
		return warning(areaData, cure, "%s", text)
	}
	return fine(areaData, "%s", text)
}

// inodes warns if files, not bytes, run out. Some file systems do not count them.
func inodes(name string, all, free uint64) (api.Check, bool) {
	const cure = "remove small files there, or put --data on another file system: without inodes no file can be made"
	switch {
	case all == 0 || free >= littleNodes:
		return api.Check{}, false
	case free < noNodes:
		return failure(areaData, cure, "%d inodes left on the disk of %s", free, name), true
	}
	return warning(areaData, cure, "%d inodes left on the disk of %s", free, name), true
}

func (f *Folder) key() api.Check {
	if os.Getenv(f.KeyEnv) != "" {
		return fine(areaData, "secrets are encrypted with the key in %s", f.KeyEnv)
	}
	info, err := os.Stat(filepath.Join(f.Dir, f.KeyFile))
	switch {
	case err != nil:
		return failure(areaData, "bring "+f.KeyFile+" back from the backup: what it encrypted is lost without it", "the key that encrypts secrets cannot be read: %s", plain(err))
	case info.Mode().Perm()&0o077&permBits != 0:
		return failure(areaData, "chmod 600 "+f.KeyFile, "the key that encrypts secrets can be read by others (mode %#o)", info.Mode().Perm())
	}
	return fine(areaData, "secrets are encrypted with %s", f.KeyFile)
}
