package proc

import (
	"io"
	"os"
	"os/exec"
	"sync"
)

// own knows the programs that this process started itself, which are no orphans,
// and the stamps of those that live.
var own struct {
	starting sync.RWMutex // read: a program is being started; written: this process bears its stamp

	mu       sync.Mutex
	programs map[life]stamp // 0: it has none
	last     stamp
}

// stamp tells what was started by one run from all else, whatever it gives up:
// it stands in a limit that every process inherits. 0 is none.
type stamp uint64

// stamps is how many there are, the range below the limit's own value in which
// they stand.
const stamps = 1 << 15

// StartOwn starts a program that is of no run, such as another part of this
// product: no run takes it for an orphan that it left.
func StartOwn(cmd *exec.Cmd) error {
	_, err := startPlain(cmd, cmd.Start)
	return err
}

// startPlain starts a program whose processes bear no stamp.
func startPlain(cmd *exec.Cmd, start func() error) (id Ident, err error) {
	own.starting.RLock()
	defer own.starting.RUnlock()
	if err := start(); err != nil {
		return id, err
	}
	return remember(cmd, 0), nil
}

// startStamped starts a program whose processes all bear a new stamp.
func startStamped(cmd *exec.Cmd, start func() error) (id Ident, s stamp, err error) {
	own.starting.Lock()
	defer own.starting.Unlock()
	s = unusedStamp()
	restore := putStamp(s)
	err = start()
	restore()
	if err != nil {
		return id, 0, err
	}
	return remember(cmd, s), s, nil
}

// remember makes a program known that has just been started.
func remember(cmd *exec.Cmd, s stamp) Ident {
	id := Identify(cmd.Process.Pid)
	own.mu.Lock()
	defer own.mu.Unlock()
	if own.programs == nil {
		own.programs = map[life]stamp{}
	}
	own.programs[life{id.PID, id.Start}] = s
	return id
}

// unusedStamp is one that nothing alive has.
func unusedStamp() stamp {
	own.mu.Lock()
	defer own.mu.Unlock()
	used := map[stamp]bool{}
	for _, s := range own.programs {
		used[s] = true
	}
	for range stamps - 1 {
		own.last = own.last%(stamps-1) + 1
		if !used[own.last] {
			return own.last
		}
	}
	return 0 // more runs than stamps: what this one leaves cannot be told from what others leave
}

// forgetOwn is called when nothing of a program lives.
func forgetOwn(id Ident) {
	own.mu.Lock()
	defer own.mu.Unlock()
	delete(own.programs, life{id.PID, id.Start})
}

// left reports whether an entry of the process table is an orphan that a run
// left: it was handed to this process, which did not start it, and it is of
// another session than this process. It bears the run's stamp, or none of those
// that live: who takes off the stamp is of every run that could have left it.
func left(e entry, by Ident, s stamp, session int) bool {
	if e.ppid != os.Getpid() || e.sid == session || e.start < by.Start {
		return false
	}
	own.starting.Lock()   // what was being started when it was seen is known from here on
	own.starting.Unlock() //nolint:staticcheck // nothing is to be done meanwhile
	own.mu.Lock()
	defer own.mu.Unlock()
	if _, ours := own.programs[life{e.pid, e.start}]; ours {
		return false
	}
	has := stampOf(e.pid)
	if has == s && s != 0 {
		return true
	}
	for _, other := range own.programs {
		if has != 0 && other == has {
			return false
		}
	}
	return markAmong(e.pid, func(mark string) bool { return mark != by.Mark }) == ""
}

// TextFile returns the text as an open, nameless file, from its beginning.
func TextFile(text string) (*os.File, error) {
	if text == "" {
		return os.Open(os.DevNull)
	}
	f, err := namelessFile()
	if err != nil {
		return nil, err
	}
	if _, err := f.WriteString(text); err != nil {
		f.Close()
		return nil, err
	}
	if _, err := f.Seek(0, io.SeekStart); err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}
