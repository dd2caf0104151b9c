//go:build unix

package command

import (
	"syscall"

	"golang.org/x/sys/unix"
)

// The signals by which the system tells a program of a limit.
const (
	fileSizeSignal = syscall.SIGXFSZ
	cpuTimeSignal  = syscall.SIGXCPU
)

// nameOf is a signal's name: SIGSEGV; "" where it has none.
func nameOf(s syscall.Signal) string { return unix.SignalName(s) }
