package agentd_test

import (
	"syscall"

	"github.com/signalbox-ai/signalbox/internal/proc"
)

func ownSession() *syscall.SysProcAttr { return nil }

func lives(pid int) bool { return proc.Identify(pid).Start != 0 }
