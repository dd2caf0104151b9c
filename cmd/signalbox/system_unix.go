//go:build unix

package main

import (
	"io/fs"
	"os"
	"os/exec"
	"strconv"
	"syscall"

	"golang.org/x/sys/unix"
)

// homeVariable names the folder of the user.
const homeVariable = "HOME"

// addressInUse says that another listens at an address.
const addressInUse = syscall.EADDRINUSE

// detach has a program live on when this one's terminal is closed.
func detach(cmd *exec.Cmd) { cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true} }

func alive(pid int) bool { return pid > 0 && syscall.Kill(pid, 0) == nil }

func kill(pid int) { _ = syscall.Kill(pid, syscall.SIGKILL) } // it has ended, if this fails

// freeze stops a program in the middle of what it does, until thaw.
func freeze(pid int) error { return syscall.Kill(pid, syscall.SIGSTOP) }

func thaw(pid int) { _ = syscall.Kill(pid, syscall.SIGCONT) } // it has ended, if this fails

// userName tells this user from others, in the name of a file.
func userName() string { return strconv.Itoa(os.Getuid()) }

// mine reports whether a file belongs to this user, as far as that is known.
func mine(info fs.FileInfo) bool {
	stat, ok := info.Sys().(*syscall.Stat_t)
	return !ok || int(stat.Uid) == os.Getuid()
}

// openToOthers reports whether a folder has other permissions than 0700.
func openToOthers(info fs.FileInfo) bool { return info.Mode().Perm() != 0o700 }

func freeBytes(dir string) (int64, bool) {
	var s unix.Statfs_t
	if err := unix.Statfs(dir, &s); err != nil {
		return 0, false
	}
	return int64(s.Bavail) * int64(s.Bsize), true //nolint:unconvert // the width of both differs by system
}

// firstExtra is the first of exec.Cmd.ExtraFiles.
const firstExtra = 3

// handFile gives a program a file that is open, and says by what name it knows it.
func handFile(cmd *exec.Cmd, file *os.File) (name string, err error) {
	cmd.ExtraFiles = []*os.File{file}
	return "1", nil
}

// handedFile is the file that this program was given.
func handedFile(string) (*os.File, error) {
	return os.NewFile(firstExtra, handedEnv), nil
}
