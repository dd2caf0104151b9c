package proc

import (
	"io"
	"os"
	"os/exec"
	"sync"
)

// own has the programs that this process started itself, which are not orphans,
// and the stamps of those that are alive.
var own struct {
	starting sync.RWMutex // read-locked: a program is being started; locked: this process carries its stamp

	mu       sync.Mutex
	programs map[life]stamp // 0: without a stamp
	last     stamp
}

// stamp identifies the processes of one run, whatever else they give up: it is
// encoded in a limit that every process inherits. 0 is none.
type stamp uint64

// stamps is the number of stamps: the range below the limit's own value that
// encodes them.
const stamps = 1 << 15

// StartOwn starts a program that belongs to no run, such as another part of
// this product: no run mistakes it for an orphan of its own.
func StartOwn(cmd *exec.Cmd) error {
	_, err := startPlain(cmd, cmd.Start)
	return err
}

// startPlain starts a program whose processes have no stamp.
func startPlain(cmd *exec.Cmd, start func() error) (id Ident, err error) {
	own.starting.RLock()
	defer own.starting.RUnlock()
	if err := start(); err != nil {
		return id, err
	}
	return remember(cmd, 0), nil
}

// startStamped starts a program whose processes all have a new stamp.
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

// remember records a program that was just started.
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

// unusedStamp returns a stamp that no living program has.
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
	return 0 // more runs than stamps: orphans of this run cannot be distinguished from those of others
}

// forgetOwn is called when no process of a program is alive.
func forgetOwn(id Ident) {
	own.mu.Lock()
	defer own.mu.Unlock()
	delete(own.programs, life{id.PID, id.Start})
}

// left reports whether an entry of the process table is an orphan that a run
// left: a child of this process that it did not start, in another session. It
// has the run's stamp, or none of the stamps in use: an orphan without a stamp
// counts for every run that could have left it.
func left(e entry, by Ident, s stamp, session int) bool {
	if e.ppid != os.Getpid() || e.sid == session || e.start < by.Start {
		return false
	}
	own.starting.Lock()   // waits for programs that were being started at the time of the scan
	own.starting.Unlock() //nolint:staticcheck // empty critical section on purpose
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

// TextFile returns the text as an open, nameless file, positioned at its
// beginning.
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
