package command

import (
	"os"

	"golang.org/x/sys/unix"
)

// shortInput is a pipe that contains a line, which must fit, and then ends. It
// is not registered with the runtime's poller, which saves four system calls
// per run.
func shortInput(line []byte) (*os.File, error) {
	var p [2]int
	if err := unix.Pipe2(p[:], unix.O_CLOEXEC); err != nil {
		return nil, os.NewSyscallError("pipe2", err)
	}
	_, err := unix.Write(p[1], line)
	_ = unix.Close(p[1]) // the pipe keeps its content
	theirs := os.NewFile(uintptr(p[0]), "stdin")
	if err != nil {
		theirs.Close()
		return nil, os.NewSyscallError("write", err)
	}
	return theirs, nil
}
