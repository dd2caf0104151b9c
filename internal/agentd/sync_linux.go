package agentd

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

const readOnlyFlag = unix.ST_RDONLY

// syncData makes written data durable. For bytes overwritten in place it does not wait for the
// journal, as a sync of the whole file does because of its timestamps.
func syncData(f *os.File) error {
	for {
		err := unix.Fdatasync(int(f.Fd()))
		if !errors.Is(err, unix.EINTR) {
			return os.NewSyscallError("fdatasync", err)
		}
	}
}
