package testdisk

import (
	"errors"
	"os"
	"testing"

	"golang.org/x/sys/unix"
)

// New creates a new disk and returns its folder, which is removed with the
// test. The options are those of tmpfs: size=8m, nr_inodes=20, mode=0700.
func New(t testing.TB, options string) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "disk") // short, since it may be part of a socket's path
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := os.Remove(dir); err != nil { // it is empty, or still mounted
			t.Error(err)
		}
	})
	Mount(t, dir, options)
	return dir
}

// Mount mounts a disk on a folder until the test ends, or skips the test if
// this user may not mount.
func Mount(t testing.TB, dir, options string) {
	t.Helper()
	err := unix.Mount("signalbox-test", dir, "tmpfs", 0, options)
	if errors.Is(err, unix.EPERM) || errors.Is(err, unix.EACCES) {
		t.Skipf("a small disk can only be mounted by root: %v", err)
	}
	if err != nil {
		t.Fatalf("mount a small disk on %s: %v", dir, err)
	}
	t.Cleanup(func() {
		if err := unix.Unmount(dir, unix.MNT_DETACH); err != nil {
			t.Error(err)
		}
	})
}
