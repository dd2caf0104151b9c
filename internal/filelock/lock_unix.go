//go:build unix

package filelock

import (
	"errors"
	"os"
	"syscall"
)

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

// OpenFolder opens what stands for a folder where its lock is taken: the folder.
func OpenFolder(path string) (*os.File, error) { return os.Open(path) }
