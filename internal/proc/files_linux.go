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

// pipeOut is a pipe whose writing end is the program's alone, and so is not
// made ready for us to wait for.
func pipeOut() (r, w *os.File, err error) {
	var fd [2]int
	if err := unix.Pipe2(fd[:], unix.O_CLOEXEC); err != nil {
		return nil, nil, os.NewSyscallError("pipe2", err)
	}
	if err := unix.SetNonblock(fd[0], true); err != nil {
		unix.Close(fd[0]) //nolint:errcheck // nothing was written
		unix.Close(fd[1]) //nolint:errcheck // nothing was written
		return nil, nil, os.NewSyscallError("setnonblock", err)
	}
	return os.NewFile(uintptr(fd[0]), "output"), os.NewFile(uintptr(fd[1]), "output"), nil
}
