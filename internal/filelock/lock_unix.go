//go:build unix

package filelock

import (
	"errors"
	"os"
	"syscall"
)

// Take takes the exclusive lock of f without waiting. The lock ends when f is
// closed.
func Take(f *os.File) error { return lock(f, syscall.LOCK_EX) }

// Look takes a shared lock of f: it fails while someone holds the exclusive
// lock, and several shared locks can exist.
func Look(f *os.File) error { return lock(f, syscall.LOCK_SH) }

func lock(f *os.File, how int) error {
	for {
		switch err := syscall.Flock(int(f.Fd()), how|syscall.LOCK_NB); {
		case errors.Is(err, syscall.EINTR): // interrupted by a signal
		case errors.Is(err, syscall.EWOULDBLOCK):
			return ErrHeld
		default:
			return os.NewSyscallError("flock", err)
		}
	}
}

// OpenFolder opens the file that carries a folder's lock: the folder itself.
func OpenFolder(path string) (*os.File, error) { return os.Open(path) }
