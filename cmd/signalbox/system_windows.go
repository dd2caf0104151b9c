package main

import (
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"strconv"
	"syscall"

	"golang.org/x/sys/windows"

	"github.com/signalbox-ai/signalbox/internal/proc"
)

// homeVariable names the folder of the user.
const homeVariable = "USERPROFILE"

// addressInUse says that another listens at an address.
const addressInUse = windows.WSAEADDRINUSE

// detach has a program live on when this one's console is closed: it has one of its
// own, which nobody sees.
func detach(cmd *exec.Cmd) {
	attr(cmd).CreationFlags |= windows.CREATE_NEW_PROCESS_GROUP | windows.CREATE_NO_WINDOW
}

func attr(cmd *exec.Cmd) *syscall.SysProcAttr {
	if cmd.SysProcAttr == nil {
		cmd.SysProcAttr = &syscall.SysProcAttr{}
	}
	return cmd.SysProcAttr
}

func alive(pid int) bool { return proc.Identify(pid).Start != 0 }

func kill(pid int) {
	if p, err := os.FindProcess(pid); err == nil {
		_ = p.Kill() // it has ended, if this fails
		_ = p.Release()
	}
}

// freeze fails: no signal stops a program here.
func freeze(int) error {
	return errors.New("Windows stops no program by a signal; end the agent in the Task Manager to see it recover") //nolint:staticcheck // a name
}

func thaw(int) {}

// userName tells this user from others, in the name of a file: the temporary folder
// is the user's own here.
func userName() string { return "own" }

// mine is not looked at: the temporary folder is the user's own here.
func mine(fs.FileInfo) bool { return true }

// openToOthers is not looked at: permission bits say nothing here.
func openToOthers(fs.FileInfo) bool { return false }

func freeBytes(dir string) (int64, bool) {
	name, err := windows.UTF16PtrFromString(dir)
	if err != nil {
		return 0, false
	}
	var free uint64
	if err := windows.GetDiskFreeSpaceEx(name, &free, nil, nil); err != nil {
		return 0, false
	}
	return int64(min(free, 1<<62)), true
}

// handFile gives a program a file that is open, and says by what name it knows it.
func handFile(cmd *exec.Cmd, file *os.File) (name string, err error) {
	h := file.Fd()
	if err := windows.SetHandleInformation(windows.Handle(h), windows.HANDLE_FLAG_INHERIT, windows.HANDLE_FLAG_INHERIT); err != nil {
		return "", os.NewSyscallError("SetHandleInformation", err)
	}
	attr(cmd).AdditionalInheritedHandles = []syscall.Handle{syscall.Handle(h)}
	return strconv.FormatUint(uint64(h), 10), nil
}

// handedFile is the file that this program was given.
func handedFile(name string) (*os.File, error) {
	h, err := strconv.ParseUint(name, 10, 64)
	if err != nil {
		return nil, err
	}
	// What this program starts is not to have it.
	if err := windows.SetHandleInformation(windows.Handle(h), windows.HANDLE_FLAG_INHERIT, 0); err != nil {
		return nil, os.NewSyscallError("SetHandleInformation", err)
	}
	return os.NewFile(uintptr(h), handedEnv), nil
}
