//go:build unix

package mcp_test

import (
	"errors"
	"syscall"
)

// free reports whether no process has a PID.
func free(pid int) bool { return errors.Is(syscall.Kill(pid, 0), syscall.ESRCH) }

// freeze stops a program at whatever it is doing.
func freeze(pid int) error { return syscall.Kill(pid, syscall.SIGSTOP) }

func session(own bool) *syscall.SysProcAttr { return &syscall.SysProcAttr{Setsid: own} }
