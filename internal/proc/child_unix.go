//go:build unix

package proc

import (
	"os"
	"os/exec"
	"syscall"
)

// Detach gives a program its own session, so that it outlives this program's
// terminal.
func Detach(cmd *exec.Cmd) { cmd.SysProcAttr = ownSession() }

// Running reports whether a process has this PID.
func Running(pid int) bool { return pid > 0 && syscall.Kill(pid, 0) == nil }

// Kill kills a process if it is still running.
func Kill(pid int) { _ = syscall.Kill(pid, syscall.SIGKILL) }

// Suspend stops a process until Resume.
func Suspend(pid int) error { return syscall.Kill(pid, syscall.SIGSTOP) }

// Resume lets a suspended process continue, if it is still running.
func Resume(pid int) { _ = syscall.Kill(pid, contSignal) }

// firstExtra is the descriptor of the first file in exec.Cmd.ExtraFiles.
const firstExtra = 3

// PassFile lets a program inherit an open file. The program calls InheritedFile with
// the name.
func PassFile(cmd *exec.Cmd, file *os.File) (name string, err error) {
	cmd.ExtraFiles = []*os.File{file}
	return "1", nil
}

// InheritedFile is the file that PassFile passed to this program.
func InheritedFile(name string) (*os.File, error) { return os.NewFile(firstExtra, name), nil }
