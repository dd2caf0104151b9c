//go:build unix

package proc

import (
	"os"
	"strconv"
	"syscall"
)

// SystemVariables are variables without which programs of this system do not run,
// beyond those that are known everywhere.
var SystemVariables []string

// VariableName is the name of a variable as the system tells it from others.
func VariableName(name string) string { return name }

// contSignal lets a stopped process go on.
const contSignal = syscall.SIGCONT

// ownSession has a program lead a session and a process group.
func ownSession() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setsid: true} }

// systemBox is the box that a run has: here there is none but the one it was given.
func systemBox(given Box) (Box, error) { return given, nil }

// freeBox gives back what systemBox made.
func freeBox(Box) {}

// groupLives tells whether a process group has a process.
func groupLives(group int) bool { return syscall.Kill(-group, 0) == nil }

// signalGroup sends to a process group. An error says that it is gone.
func signalGroup(group int, sig syscall.Signal) { _ = syscall.Kill(-group, sig) }

// reapOrphan collects a dead process, if it was handed to this one.
func reapOrphan(pid int) {
	var ws syscall.WaitStatus
	_, _ = syscall.Wait4(pid, &ws, syscall.WNOHANG, nil)
}

// tempFile is a nameless file in the temporary folder.
func tempFile() (*os.File, error) {
	f, err := os.CreateTemp("", "signalbox-stdin-") // 0600
	if err != nil {
		return nil, err
	}
	os.Remove(f.Name())
	return f, nil
}

// OwnFiles keeps the files that this process was started with, beyond its
// input and outputs, from the programs that it starts: whoever started it may
// have left open what is not for them. Call it before anything is started.
func OwnFiles() {
	const first = 3 // behind standard error
	open, err := os.ReadDir("/dev/fd")
	if err != nil {
		return // a system that does not tell which there are
	}
	for _, f := range open {
		if fd, err := strconv.Atoi(f.Name()); err == nil && fd >= first {
			syscall.CloseOnExec(fd)
		}
	}
}
