package doctor

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"

	"github.com/signalbox-ai/signalbox/api"
)

// Free space of the data folder below which a look warns and fails, and free
// inodes.
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
	KeyEnv  string // the variable that has the key instead of the file, if that is set
	// Database says that an SQLite file lies there, which wants a file system
	// of this machine.
	Database bool
	// Untouched keeps the look from trying to write, where no director runs.
	Untouched bool
}

// Data looks at the data folder: whether the director can write there, who
// else can read it, how much room is left, what disk it is on, and the key with
// which secrets are encrypted.
func Data(f Folder) Look {
	return func(_ context.Context, admin bool) []api.Check {
		name := "the data folder"
		if admin {
			name += " " + f.Dir
		}
		out := []api.Check{f.folder(name)}
		var s unix.Statfs_t
		if err := unix.Statfs(f.Dir, &s); err != nil {
			out = append(out, warning(areaData, "see whether its file system is there", "how much room is left cannot be told: %v", err))
		} else {
			out = append(out, f.disk(name, &s)...)
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
	case info.Mode().Perm()&0o022 != 0:
		return failure(areaData, "chmod 700, and look who owns the files in it", "%s can be written by others (mode %#o)", name, info.Mode().Perm())
	case info.Mode().Perm()&0o077 != 0:
		return warning(areaData, "chmod 700", "%s can be read by others (mode %#o)", name, info.Mode().Perm())
	}
	return fine(areaData, "%s can be written, and is closed to others", name)
}

func (f *Folder) writable() error {
	if f.Untouched {
		return unix.Access(f.Dir, unix.W_OK)
	}
	file, err := os.CreateTemp(f.Dir, ".doctor-*")
	if err != nil {
		return err
	}
	return errors.Join(file.Close(), os.Remove(file.Name()))
}

// plain is an error without the path, which not everyone may know.
func plain(err error) string {
	var path *fs.PathError
	if errors.As(err, &path) {
		err = path.Err
	}
	return err.Error()
}

// disk looks at the file system of the folder.
func (f *Folder) disk(name string, s *unix.Statfs_t) []api.Check {
	out := []api.Check{room(name, int64(s.Bavail)*int64(s.Bsize))} //nolint:unconvert // the width of both differs by system
	if c, bad := inodes(name, s.Files, s.Ffree); bad {
		out = append(out, c)
	}
	if kind := network(s); kind != "" && f.Database {
		out = append(out, failure(areaData, "put --data on a disk of this machine, or use --store postgres:// or redis://",
			"%s is on a network file system (%s): SQLite's locks and syncs do not hold there, and two directors may both write", name, kind))
	}
	return out
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

// inodes warns where files, not bytes, run out. Some file systems do not count
// them.
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
	case info.Mode().Perm()&0o077 != 0:
		return failure(areaData, "chmod 600 "+f.KeyFile, "the key that encrypts secrets can be read by others (mode %#o)", info.Mode().Perm())
	}
	return fine(areaData, "secrets are encrypted with %s", f.KeyFile)
}
