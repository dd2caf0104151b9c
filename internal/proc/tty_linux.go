package proc

import (
	"os"

	"golang.org/x/sys/unix"
)

// wakeable returns the same terminal as a file whose reads end when it is
// closed, and whose writes know deadlines. Opening it made it a blocking one.
func wakeable(f *os.File) (*os.File, error) {
	fd, err := unix.FcntlInt(f.Fd(), unix.F_DUPFD_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	if err := unix.SetNonblock(fd, true); err != nil {
		unix.Close(fd) //nolint:errcheck // the error before says more
		return nil, err
	}
	f.Close()
	return os.NewFile(uintptr(fd), f.Name()), nil
}
