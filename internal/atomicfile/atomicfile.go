// Package atomicfile replaces files atomically and durably: after a crash the
// old or the new content is there, never a part.
package atomicfile

import (
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"syscall"
)

// Write replaces a file with mode 0600. The file is durable when Write returns,
// as far as the file system can sync folders.
func Write(path string, data []byte) error {
	draft, err := Draft(path, data)
	if err != nil {
		return err
	}
	if err := os.Rename(draft, path); err != nil {
		_ = os.Remove(draft)
		return err
	}
	if err := SyncFolder(filepath.Dir(path)); !errors.Is(err, syscall.EINVAL) { // some network file systems cannot
		return err
	}
	return nil
}

// Draft writes a file with mode 0600 under a new name beside path, syncs it
// and returns the name. The caller renames or removes it.
func Draft(path string, data []byte) (string, error) {
	f, err := os.CreateTemp(filepath.Dir(path), ".new-*") // 0600, O_EXCL
	if err != nil {
		return "", err
	}
	_, err = f.Write(data)
	if err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err != nil { // Windows cannot rename an open file
		_ = os.Remove(f.Name())
		return "", err
	}
	return f.Name(), nil
}

// SyncFolder makes the names in a folder durable.
func SyncFolder(dir string) error {
	if runtime.GOOS == "windows" {
		return nil // Windows cannot sync a folder
	}
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}
