//go:build unix

package proc

import (
	"os"
	"os/exec"
	"syscall"
)

// Detach gives a program a session of its own: it outlives the terminal of this one.
func Detach(cmd *exec.Cmd) { cmd.SysProcAttr = ownSession() }

// Running reports whether there is a process with this pid.
func Running(pid int) bool { return pid > 0 && syscall.Kill(pid, 0) == nil }

// Kill ends a process at once, if it still runs.
func Kill(pid int) { _ = syscall.Kill(pid, syscall.SIGKILL) }

// Suspend stops a process until Resume.
func Suspend(pid int) error { return syscall.Kill(pid, syscall.SIGSTOP) }

// Resume lets a suspended process go on, if it still runs.
func Resume(pid int) { _ = syscall.Kill(pid, contSignal) }

// firstExtra is the descriptor of the first of exec.Cmd.ExtraFiles.
const firstExtra = 3

// PassFile lets a program inherit an open file. The program calls InheritedFile with
// the name.
func PassFile(cmd *exec.Cmd, file *os.File) (name string, err error) {
	cmd.ExtraFiles = []*os.File{file}
	return "1", nil
}

// InheritedFile is the file that PassFile passed to this program.
func InheritedFile(name string) (*os.File, error) { return os.NewFile(firstExtra, name), nil }
