//go:build unix

package seal

import (
	"io/fs"
	"syscall"
)

// permBits are the permission bits to check.
const permBits fs.FileMode = 0o777

// owner is the user that owns a file, if known.
func owner(info fs.FileInfo) (user int, ok bool) {
	if st, ok := info.Sys().(*syscall.Stat_t); ok {
		return int(st.Uid), true
	}
	return 0, false
}
