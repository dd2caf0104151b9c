//go:build unix

package workspace

import (
	"io/fs"
	"syscall"
)

// onDisk is the disk usage of a file, in bytes.
func onDisk(st fs.FileInfo) int64 {
	if s, ok := st.Sys().(*syscall.Stat_t); ok {
		return s.Blocks * 512
	}
	return st.Size()
}
