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

// Free space of the data folder below which a look warns and fails.
const (
	little = 1 << 30
	none   = 64 << 20
)

// Data looks at the data folder: whether the director can write there, who
// else can read it, how much room is left, and the key with which secrets are
// encrypted. keyEnv is the variable that has the key instead of the file, if that is set.
func Data(dir, keyFile, keyEnv string) Look {
	return func(_ context.Context, admin bool) []api.Check {
		name := "the data folder"
		if admin {
			name += " " + dir
		}
		return []api.Check{folder(name, dir), room(name, dir), key(dir, keyFile, keyEnv)}
	}
}

func folder(name, dir string) api.Check {
	info, err := os.Stat(dir)
	if err == nil {
		err = writable(dir)
	}
	switch {
	case err != nil:
		return api.Check{Area: areaData, State: "fail", Text: name + " cannot be written: " + plain(err), Cure: "give it back to the user of the director, or make room"}
	case info.Mode().Perm()&0o077 != 0:
		return api.Check{Area: areaData, State: "warn", Text: fmt.Sprintf("%s can be read by others (mode %#o)", name, info.Mode().Perm()), Cure: "chmod 700"}
	}
	return api.Check{Area: areaData, State: "ok", Text: name + " can be written, and is closed to others"}
}

func writable(dir string) error {
	f, err := os.CreateTemp(dir, ".doctor-*")
	if err != nil {
		return err
	}
	return errors.Join(f.Close(), os.Remove(f.Name()))
}

// plain is an error without the path, which not everyone may know.
func plain(err error) string {
	var path *fs.PathError
	if errors.As(err, &path) {
		err = path.Err
	}
	return err.Error()
}

func room(name, dir string) api.Check {
	var s unix.Statfs_t
	if err := unix.Statfs(dir, &s); err != nil {
		return api.Check{Area: areaData, State: "warn", Text: "how much room is left cannot be told: " + err.Error(), Cure: "see whether its file system is there"}
	}
	free := int64(s.Bavail) * int64(s.Bsize) //nolint:unconvert // the width of both differs by system
	text := fmt.Sprintf("%.1f GiB left on the disk of %s", float64(free)/(1<<30), name)
	const cure = "make room: a full disk refuses every submit"
	switch {
	case free < none:
		return api.Check{Area: areaData, State: "fail", Text: text, Cure: cure}
	case free < little:
		return api.Check{Area: areaData, State: "warn", Text: text, Cure: cure}
	}
	return api.Check{Area: areaData, State: "ok", Text: text}
}

func key(dir, file, env string) api.Check {
	if os.Getenv(env) != "" {
		return api.Check{Area: areaData, State: "ok", Text: "secrets are encrypted with the key in " + env}
	}
	info, err := os.Stat(filepath.Join(dir, file))
	switch {
	case err != nil:
		return api.Check{Area: areaData, State: "fail", Text: "the key that encrypts secrets cannot be read: " + plain(err), Cure: "bring " + file + " back from the backup: what it encrypted is lost without it"}
	case info.Mode().Perm()&0o077 != 0:
		return api.Check{Area: areaData, State: "fail", Text: fmt.Sprintf("the key that encrypts secrets can be read by others (mode %#o)", info.Mode().Perm()), Cure: "chmod 600 " + file}
	}
	return api.Check{Area: areaData, State: "ok", Text: "secrets are encrypted with " + file}
}
