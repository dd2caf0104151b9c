package testserver

import (
	"errors"
	"syscall"
)

// Servers cannot be started on Windows: the first attempt finds no shell.
const (
	sigStop = syscall.Signal(-1)
	sigCont = syscall.Signal(-1)
)

func send(int, syscall.Signal) error { return errors.ErrUnsupported }

func collect(int) bool { return true }

func apart() *syscall.SysProcAttr { return nil }

func (a *account) attr() *syscall.SysProcAttr { return nil }
