package proc

import (
	"os/exec"
	"runtime"
	"sync"
	"syscall"
)

// forks takes what the kept thread is to run.
var forks = sync.OnceValue(func() chan<- func() {
	c := make(chan func())
	go keptThread(c)
	return c
})

// keptThread runs on one thread that lives as long as the process.
func keptThread(c <-chan func()) {
	runtime.LockOSThread()
	for f := range c {
		f()
	}
}

// startBound starts a program that gets SIGTERM when this process dies.
func startBound(cmd *exec.Cmd) error {
	cmd.SysProcAttr.Pdeathsig = syscall.SIGTERM
	started := make(chan error)
	forks() <- func() { started <- cmd.Start() }
	return <-started
}
