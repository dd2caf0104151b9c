package proc

import (
	"os"

	"golang.org/x/sys/unix"
)

// namelessFile is one in memory: no disk has to do with what a program is told.
func namelessFile() (*os.File, error) {
	fd, err := unix.MemfdCreate("signalbox-stdin", unix.MFD_CLOEXEC|unix.MFD_NOEXEC_SEAL)
	if err == unix.EINVAL { // before Linux 6.3
		fd, err = unix.MemfdCreate("signalbox-stdin", unix.MFD_CLOEXEC)
	}
	if err != nil {
		return tempFile()
	}
	return os.NewFile(uintptr(fd), "signalbox-stdin"), nil
}
