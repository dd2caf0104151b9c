package command

import "syscall"

// No signal tells a program of a limit here, and no exit code stands for one.
const (
	fileSizeSignal = syscall.Signal(-1000)
	cpuTimeSignal  = fileSizeSignal
)

func nameOf(syscall.Signal) string { return "" }
