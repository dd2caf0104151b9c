//go:build unix

package demo

import (
	"io/fs"
	"os"
	"strconv"
	"syscall"
)

// userName tells this user from others, in the name of a file.
func userName() string { return strconv.Itoa(os.Getuid()) }

// mine reports whether a file belongs to this user, as far as that is known.
func mine(info fs.FileInfo) bool {
	stat, ok := info.Sys().(*syscall.Stat_t)
	return !ok || int(stat.Uid) == os.Getuid()
}

// openToOthers reports whether a folder has other permissions than 0700.
func openToOthers(info fs.FileInfo) bool { return info.Mode().Perm() != 0o700 }
