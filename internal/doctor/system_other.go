//go:build unix && !linux

package doctor

import "golang.org/x/sys/unix"

// groupOf: there are no control groups here.
func groupOf() []bound { return nil }

// network is the name of the file system if it is on another machine; "" otherwise.
func network(s *unix.Statfs_t) string {
	if s.Flags&unix.MNT_LOCAL != 0 {
		return ""
	}
	return unix.ByteSliceToString(s.Fstypename[:])
}
