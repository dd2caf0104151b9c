//go:build unix

package command

import (
	"syscall"

	"golang.org/x/sys/unix"
)

// The signals that report a limit to the program.
const (
	fileSizeSignal = syscall.SIGXFSZ
	cpuTimeSignal  = syscall.SIGXCPU
)

// nameOf is a signal's name, such as SIGSEGV; "" if it has none.
func nameOf(s syscall.Signal) string { return unix.SignalName(s) }
