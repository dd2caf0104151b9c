//go:build unix

package agentd_test

import "syscall"

func ownSession() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setsid: true} }

func lives(pid int) bool { return syscall.Kill(pid, 0) == nil }
