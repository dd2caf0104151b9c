package agentd

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

const readOnlyFlag = unix.ST_RDONLY

// syncData puts what was written on the disk. For bytes that were overwritten
// in place it has no journal to wait for, which a sync of the whole file has
// for its times.
func syncData(f *os.File) error {
	for {
		err := unix.Fdatasync(int(f.Fd()))
		if !errors.Is(err, unix.EINTR) {
			return os.NewSyscallError("fdatasync", err)
		}
	}
}
