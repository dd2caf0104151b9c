//go:build unix

package main

import (
	"io/fs"
	"os"
	"strconv"
	"syscall"

	"golang.org/x/sys/unix"
)

// homeVariable names the folder of the user.
const homeVariable = "HOME"

// addressInUse says that another listens at an address.
const addressInUse = syscall.EADDRINUSE

// userName tells this user from others, in the name of a file.
func userName() string { return strconv.Itoa(os.Getuid()) }

// mine reports whether a file belongs to this user, as far as that is known.
func mine(info fs.FileInfo) bool {
	stat, ok := info.Sys().(*syscall.Stat_t)
	return !ok || int(stat.Uid) == os.Getuid()
}

// openToOthers reports whether a folder has other permissions than 0700.
func openToOthers(info fs.FileInfo) bool { return info.Mode().Perm() != 0o700 }

func freeBytes(dir string) (int64, bool) {
	var s unix.Statfs_t
	if err := unix.Statfs(dir, &s); err != nil {
		return 0, false
	}
	return int64(s.Bavail) * int64(s.Bsize), true //nolint:unconvert // the width of both differs by system
}
