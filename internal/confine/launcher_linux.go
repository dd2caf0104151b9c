package confine

import (
	"fmt"
	"os"
	"runtime"

	"golang.org/x/sys/unix"
)

// launcher is the thread on which the programs of a box are started. The
// runtime makes no new thread from it, so what it gave up is its own and its
// children's alone.
type launcher struct {
	work chan func()
	gone chan struct{}
	kept string // what Landlock leaves to it, as landlockKey; "" is all
}

// newLauncher makes one that can gain no privileges.
func newLauncher() (*launcher, error) {
	l := &launcher{work: make(chan func()), gone: make(chan struct{})}
	go l.run(nil)
	if err := l.do(giveUpPrivileges); err != nil {
		l.stop()
		return nil, err
	}
	return l, nil
}

func giveUpPrivileges() error {
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return fmt.Errorf("no_new_privs: %w", err)
	}
	return nil
}

// run serves on a thread that is not the first of the process: that one stands
// for the process in the kernel's books (whose memory counts where), and it
// cannot end.
func (l *launcher) run(elsewhere chan<- struct{}) {
	runtime.LockOSThread()
	if unix.Gettid() == os.Getpid() {
		taken := make(chan struct{})
		go l.run(taken)
		<-taken // by then the other has another thread
		runtime.UnlockOSThread()
		return
	}
	if elsewhere != nil {
		close(elsewhere)
	}
	defer close(l.gone)
	for f := range l.work {
		f()
	}
	// It ends locked, so the thread ends too.
}

// do runs f on the thread.
func (l *launcher) do(f func() error) error {
	done := make(chan error)
	l.work <- func() { done <- f() }
	return <-done
}

// stop ends the thread. Nothing that it started may live.
func (l *launcher) stop() {
	close(l.work)
	<-l.gone
}
