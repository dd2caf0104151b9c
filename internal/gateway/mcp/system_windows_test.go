package mcp_test

import (
	"errors"
	"syscall"

	"github.com/signalbox-ai/signalbox/internal/proc"
)

// free reports whether no process has a PID.
func free(pid int) bool { return proc.Identify(pid).Start == 0 }

// freeze fails: Windows has no signal that stops a program.
func freeze(int) error { return errors.ErrUnsupported }

func session(bool) *syscall.SysProcAttr { return nil }
