// Package filelock takes the kernel's lock on an open file or folder. Such a lock
// ends with its holder, so what a dead process left behind is in nobody's way.
package filelock

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"syscall"
)

// ErrHeld says that another holds the lock.
var ErrHeld = errors.New("another holds the lock")

// Take takes the lock of f for this opener alone, without waiting for it. It goes
// when f is closed.
func Take(f *os.File) error { return lock(f, syscall.LOCK_EX) }

// Look takes the lock of f beside others that look: it fails where somebody took
// the lock, and two who look do not see each other.
func Look(f *os.File) error { return lock(f, syscall.LOCK_SH) }

func lock(f *os.File, how int) error {
	for {
		switch err := syscall.Flock(int(f.Fd()), how|syscall.LOCK_NB); {
		case errors.Is(err, syscall.EINTR): // a signal came first
		case errors.Is(err, syscall.EWOULDBLOCK):
			return ErrHeld
		default:
			return os.NewSyscallError("flock", err)
		}
	}
}

// Sign writes into a file whose lock was taken who did. The lock needs no such
// text: it is for people who find the file locked.
func Sign(f *os.File) error {
	host, err := os.Hostname()
	if err != nil {
		host = "unknown host"
	}
	if err := f.Truncate(0); err != nil {
		return err
	}
	_, err = f.WriteAt(fmt.Appendf(nil, "process %d on %s\n", os.Getpid(), host), 0)
	return err
}

// Holder is who signed a file and when, as part of a sentence: otherwise, where
// nobody can be told.
func Holder(f *os.File, otherwise string) string {
	b := make([]byte, 300)
	n, _ := f.ReadAt(b, 0) // who it is matters less than that there is someone
	who := strings.TrimSpace(string(b[:n]))
	if who == "" {
		return otherwise
	}
	if info, err := f.Stat(); err == nil {
		who += info.ModTime().UTC().Format(" since 2006-01-02T15:04:05Z")
	}
	return who
}
