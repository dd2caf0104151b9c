package command

import "syscall"

// On Windows no signal and no exit code reports a limit.
const (
	fileSizeSignal = syscall.Signal(-1000)
	cpuTimeSignal  = fileSizeSignal
)

func nameOf(syscall.Signal) string { return "" }
