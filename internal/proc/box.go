package proc

import (
	"os/exec"
	"syscall"
)

// Box is a place for one run that the system keeps apart, such as a control
// group; *confine.Box is one.
type Box interface {
	Start(cmd *exec.Cmd) error
	// Alive lists what lives in it; ok is false where the box cannot know.
	Alive() (pids []int, ok bool)
	// Signal sends to all that lives in it. No fork escapes SIGKILL.
	Signal(sig syscall.Signal) error
	// Wraps tells that the program which Start starts only holds the sandbox
	// of the run: it is sent nothing but SIGKILL.
	Wraps() bool
}
