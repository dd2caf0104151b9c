//go:build unix

package doctor

import (
	"io/fs"

	"golang.org/x/sys/unix"
)

// permBits are the permission bits that are meaningful here.
const permBits fs.FileMode = 0o777

// closedToOthers is the text for a folder without permissions for others.
const closedToOthers = "is closed to others"

func mostFiles() (uint64, error) {
	var l unix.Rlimit
	err := unix.Getrlimit(unix.RLIMIT_NOFILE, &l)
	return l.Cur, err
}

func mayWrite(dir string) error { return unix.Access(dir, unix.W_OK) }

func volumeOf(dir string) (volume, error) {
	var s unix.Statfs_t
	if err := unix.Statfs(dir, &s); err != nil {
		return volume{}, err
	}
	free := int64(s.Bavail) * int64(s.Bsize) //nolint:unconvert // the field widths differ by system
	return volume{free: free, nodes: s.Files, freeNodes: s.Ffree, network: network(&s)}, nil
}
