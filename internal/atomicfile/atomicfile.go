// Package atomicfile writes files that are there whole or not at all, whatever
// happens meanwhile.
package atomicfile

import (
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"syscall"
)

// Write puts a file, mode 0600, in the place of another. It is on the disk when
// Write returns, as far as the file system can sync folders.
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

// Draft writes a file, mode 0600, under a new name beside path, puts it on the
// disk and returns the name. The caller gives it its place, or removes it.
func Draft(path string, data []byte) (string, error) {
	f, err := os.CreateTemp(filepath.Dir(path), ".new-*") // 0600, O_EXCL
	if err != nil {
		return "", err
	}
	_, err = f.Write(data)
	if err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err != nil { // Windows renames no file that is open
		_ = os.Remove(f.Name())
		return "", err
	}
	return f.Name(), nil
}

// SyncFolder puts the names in a folder on the disk.
func SyncFolder(dir string) error {
	if runtime.GOOS == "windows" {
		return nil // a folder cannot be synced there
	}
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}
