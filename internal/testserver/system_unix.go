//go:build unix

package testserver

import "syscall"

const (
	sigStop = syscall.SIGSTOP
	sigCont = syscall.SIGCONT
)

func send(pid int, sign syscall.Signal) error { return syscall.Kill(pid, sign) }

// collect reports whether a child has ended, and collects it if so.
func collect(pid int) bool {
	var status syscall.WaitStatus
	ended, err := syscall.Wait4(pid, &status, syscall.WNOHANG, nil)
	return err == nil && ended == pid
}

// apart makes a program lead its own process group.
func apart() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }

// attr makes a program run as that user.
func (a *account) attr() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: a.uid, Gid: a.gid}}
}
