//go:build !linux

package confine

import (
	"errors"
	"fmt"
	"os/exec"
	"runtime"
	"syscall"
)

// Host represents this machine's means of limiting child processes: on this
// system, none.
type Host struct{ o Options }

// Open chooses the best method. It fails only if the method that Options ask
// for is not available.
func Open(o Options) (*Host, error) {
	if m := o.Method; m != "" && m != "auto" {
		return nil, fmt.Errorf("confine: method %s is not available on %s", m, runtime.GOOS)
	}
	return &Host{o: o}, nil
}

// Report returns what was found.
func (h *Host) Report() Report {
	r := Report{Method: "none", Detail: "limits and sandboxes need Linux", Cure: "run the director on Linux"}
	for _, n := range []string{"memory", "cpus", "cpu_time", "processes", "file_size", "open_files"} {
		r.Limits = append(r.Limits, LimitReport{Name: n, Note: "needs Linux"})
	}
	for _, k := range []string{bubblewrap, landlocked} {
		r.Sandbox = append(r.Sandbox, SandboxReport{Kind: k, Note: "needs Linux"})
	}
	return r
}

// Take returns a box. An error says that a sandbox is required: there is
// none.
func (h *Host) Take(_ Limits, s Sandbox) (*Box, error) {
	if s.On && s.Required {
		return nil, fmt.Errorf("the sandbox is required and not available: there is none on %s", runtime.GOOS)
	}
	return &Box{}, nil
}

// Close releases what the host created.
func (h *Host) Close() error { return nil }

// Box is a place for one run at a time. It implements proc.Box.
type Box struct{}

// Start starts cmd.
func (b *Box) Start(cmd *exec.Cmd) error { return cmd.Start() }

// Alive lists the living processes in the box; ok is false if it cannot know.
func (b *Box) Alive() (pids []int, ok bool) { return nil, false }

// Signal is not supported: proc knows the living processes.
func (b *Box) Signal(syscall.Signal) error { return errors.ErrUnsupported }

// Wraps reports whether the program that Start starts only holds the sandbox
// in which the actual program runs.
func (b *Box) Wraps() bool { return false }

// SandboxKind names the active sandbox: none.
func (b *Box) SandboxKind() string { return "" }

// Struck names the limits that made the run fail: none are enforced.
func (b *Box) Struck() []string { return nil }

// Free returns the box.
func (b *Box) Free() error { return nil }
