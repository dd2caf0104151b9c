//go:build unix

package proc

import (
	"os"
	"strconv"
	"syscall"
)

// SystemVariables are environment variables that programs need on this system, in
// addition to those needed everywhere.
var SystemVariables []string

// VariableName is the canonical name of an environment variable on this
// system.
func VariableName(name string) string { return name }

// contSignal lets a stopped process continue.
const contSignal = syscall.SIGCONT

// ownSession makes a program lead its own session and process group.
func ownSession() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setsid: true} }

// systemBox returns the box of a run: on Unix, the given one.
func systemBox(given Box) (Box, error) { return given, nil }

// freeBox releases what systemBox made.
func freeBox(Box) {}

// groupLives reports whether a process group has a process.
func groupLives(group int) bool { return syscall.Kill(-group, 0) == nil }

// signalGroup sends to a process group. An error means that the group is
// gone.
func signalGroup(group int, sig syscall.Signal) { _ = syscall.Kill(-group, sig) }

// reapOrphan collects a dead process, if it is a child of this one.
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

// OwnFiles prevents programs from inheriting files that this process
// inherited, except for input and outputs: the parent may have left files
// open that are not meant for them. Call it before starting any program.
func OwnFiles() {
	const first = 3 // after standard error
	open, err := os.ReadDir("/dev/fd")
	if err != nil {
		return // this system does not list them
	}
	for _, f := range open {
		if fd, err := strconv.Atoi(f.Name()); err == nil && fd >= first {
			syscall.CloseOnExec(fd)
		}
	}
}
