package proc

import (
	"errors"
	"os"
	"os/exec"
	"strconv"
	"syscall"

	"golang.org/x/sys/windows"
)

// Detach gives a program its own hidden console, so that it outlives this
// program's.
func Detach(cmd *exec.Cmd) {
	attr(cmd).CreationFlags |= windows.CREATE_NEW_PROCESS_GROUP | windows.CREATE_NO_WINDOW
}

func attr(cmd *exec.Cmd) *syscall.SysProcAttr {
	if cmd.SysProcAttr == nil {
		cmd.SysProcAttr = &syscall.SysProcAttr{}
	}
	return cmd.SysProcAttr
}

// Running reports whether a process has this PID.
func Running(pid int) bool { return startOf(pid) != 0 }

// Kill kills a process if it is still running.
func Kill(pid int) {
	if p, err := os.FindProcess(pid); err == nil {
		_ = p.Kill()
		_ = p.Release()
	}
}

// Suspend fails: Windows has no signal for it.
func Suspend(int) error {
	return errors.New("Windows stops no program by a signal; end the agent in the Task Manager to see it recover") //nolint:staticcheck // a proper name
}

// Resume does nothing: see Suspend.
func Resume(int) {}

// PassFile lets a program inherit an open file. The program calls InheritedFile with
// the name.
func PassFile(cmd *exec.Cmd, file *os.File) (name string, err error) {
	h := file.Fd()
	if err := windows.SetHandleInformation(windows.Handle(h), windows.HANDLE_FLAG_INHERIT, windows.HANDLE_FLAG_INHERIT); err != nil {
		return "", os.NewSyscallError("SetHandleInformation", err)
	}
	attr(cmd).AdditionalInheritedHandles = []syscall.Handle{syscall.Handle(h)}
	return strconv.FormatUint(uint64(h), 10), nil
}

// InheritedFile is the file that PassFile passed to this program. Child processes do
// not inherit it.
func InheritedFile(name string) (*os.File, error) {
	h, err := strconv.ParseUint(name, 10, 64)
	if err != nil {
		return nil, err
	}
	if err := windows.SetHandleInformation(windows.Handle(h), windows.HANDLE_FLAG_INHERIT, 0); err != nil {
		return nil, os.NewSyscallError("SetHandleInformation", err)
	}
	return os.NewFile(uintptr(h), name), nil
}
