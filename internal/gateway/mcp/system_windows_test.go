package mcp_test

import (
	"errors"
	"syscall"

	"github.com/signalbox-ai/signalbox/internal/proc"
)

// free tells that nobody has a pid.
func free(pid int) bool { return proc.Identify(pid).Start == 0 }

// freeze fails: no signal stops a program here.
func freeze(int) error { return errors.ErrUnsupported }

func session(bool) *syscall.SysProcAttr { return nil }
