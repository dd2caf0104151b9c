//go:build unix

package seal

import (
	"io/fs"
	"syscall"
)

// permBits are the permission bits that say something here.
const permBits fs.FileMode = 0o777

// owner is the user to whom a file belongs, as far as that is known.
func owner(info fs.FileInfo) (user int, ok bool) {
	if st, ok := info.Sys().(*syscall.Stat_t); ok {
		return int(st.Uid), true
	}
	return 0, false
}
