package confine

import (
	"os/exec"
	"syscall"
)

// Host is what this machine gives to bound children with.
type Host struct{}

// Open finds the best method, and kills, with proof, whatever an earlier
// process of that name left in its boxes. It fails only where the method that
// Options ask for cannot be had.
func Open(o Options) (*Host, error) { panic("being built") }

// Report says what was found.
func (h *Host) Report() Report { panic("being built") }

// Take returns an empty box with these limits. It is the caller's until Free.
// An error says that the sandbox is required and cannot be had, or that the
// system gives no box.
func (h *Host) Take(l Limits, s Sandbox) (*Box, error) { panic("being built") }

// Close gives back what the host made. All boxes must be free.
func (h *Host) Close() error { panic("being built") }

// Box is a place for one run at a time. It is a proc.Box.
type Box struct{}

// Start starts cmd in the box: its limits hold, it can gain no privileges, and
// it is sandboxed, before its first instruction. It gets SIGKILL when this
// process dies. cmd.SysProcAttr may be changed.
func (b *Box) Start(cmd *exec.Cmd) error { panic("being built") }

// Alive lists what lives in the box; ok is false where it cannot know.
func (b *Box) Alive() (pids []int, ok bool) { panic("being built") }

// Signal sends to all that lives in the box; SIGKILL reaches also what is
// forked meanwhile.
func (b *Box) Signal(sig syscall.Signal) error { panic("being built") }

// Struck names the limits that made the run of the box fail, as far as the
// system tells: memory, processes, cpu_time.
func (b *Box) Struck() []string { panic("being built") }

// Free gives the box back. It kills what still lives in it, and a box that
// cannot be emptied is not used again: then the error names what lives.
func (b *Box) Free() error { panic("being built") }
