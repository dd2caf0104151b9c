package agentd

import (
	"os"
	"strings"

	"golang.org/x/sys/windows"
)

// homeVariable is the environment variable of the user's home.
const homeVariable = "USERPROFILE"

// fileNode identifies a file or folder by its path, which has no links.
func fileNode(path string) (string, error) { return strings.ToLower(path), nil }

// syncData makes written data durable.
func syncData(f *os.File) error { return f.Sync() }

// syncDir does nothing: Windows cannot sync a folder, and the journal of NTFS has the new
// name.
func syncDir(string) error { return nil }

// syncFile opens the file for writing, which a sync requires on Windows.
func syncFile(path string) error {
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	defer f.Close()
	return f.Sync()
}

// freeBytes is the free space, in bytes, on the disk of a folder.
func freeBytes(dir string) (int64, error) {
	name, err := windows.UTF16PtrFromString(dir)
	if err != nil {
		return 0, &os.PathError{Op: "write", Path: dir, Err: err}
	}
	var free uint64
	if err := windows.GetDiskFreeSpaceEx(name, &free, nil, nil); err != nil {
		return 0, &os.PathError{Op: "GetDiskFreeSpaceEx", Path: dir, Err: err}
	}
	return int64(free), nil
}

// checkWritable returns the reason why a folder cannot be written to. A read-only disk shows
// only at the first write.
func checkWritable(dir string) error {
	free, err := freeBytes(dir)
	if err != nil {
		return err
	}
	if free < minFreeSpace {
		return &os.PathError{Op: "write", Path: dir, Err: windows.ERROR_DISK_FULL}
	}
	return nil
}
