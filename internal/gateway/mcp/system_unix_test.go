//go:build unix

package mcp_test

import (
	"errors"
	"syscall"
)

// free tells that nobody has a pid.
func free(pid int) bool { return errors.Is(syscall.Kill(pid, 0), syscall.ESRCH) }

// freeze stops a program in the middle of what it does.
func freeze(pid int) error { return syscall.Kill(pid, syscall.SIGSTOP) }

func session(own bool) *syscall.SysProcAttr { return &syscall.SysProcAttr{Setsid: own} }
