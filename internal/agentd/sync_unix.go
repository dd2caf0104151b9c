//go:build unix

package agentd

import (
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// fileNode identifies a file or folder, independent of its path.
func fileNode(path string) (string, error) {
	var st unix.Stat_t
	if err := unix.Stat(path, &st); err != nil {
		return "", err
	}
	return fmt.Sprint(uint64(st.Dev), " ", st.Ino), nil
}

// homeVariable is the environment variable of the user's home.
const homeVariable = "HOME"

func syncDir(dir string) error { return syncFile(dir) }

func syncFile(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	return f.Sync()
}

// freeBytes is the free space, in bytes, on the disk of a folder.
func freeBytes(dir string) (int64, error) {
	var fs unix.Statfs_t
	if err := unix.Statfs(dir, &fs); err != nil {
		return 0, &os.PathError{Op: "statfs", Path: dir, Err: err}
	}
	return int64(uint64(fs.Bavail) * uint64(fs.Bsize)), nil //nolint:unconvert // other systems have other types
}

// checkWritable returns the reason why a folder cannot be written to.
func checkWritable(dir string) error {
	var fs unix.Statfs_t
	if err := unix.Statfs(dir, &fs); err != nil {
		return &os.PathError{Op: "statfs", Path: dir, Err: err}
	}
	switch {
	case int64(fs.Flags)&readOnlyFlag != 0: //nolint:unconvert // other systems have other types
		return &os.PathError{Op: "write", Path: dir, Err: unix.EROFS}
	case uint64(fs.Bavail)*uint64(fs.Bsize) < minFreeSpace || (fs.Files > 0 && fs.Ffree == 0): //nolint:unconvert // as above
		return &os.PathError{Op: "write", Path: dir, Err: unix.ENOSPC}
	}
	return nil
}
