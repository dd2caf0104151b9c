package filelock

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"unsafe"
)

// This package uses only the standard library, which does not have these.
var (
	kernel     = syscall.NewLazyDLL("kernel32.dll")
	lockFile   = kernel.NewProc("LockFileEx")
	unlockFile = kernel.NewProc("UnlockFileEx")
)

// From winbase.h and winerror.h.
const (
	failImmediately = 1
	exclusive       = 2
	errViolation    = syscall.Errno(33) // ERROR_LOCK_VIOLATION
)

// Take takes the exclusive lock of f without waiting. The lock ends when f is
// closed. f is a file, not a folder: see OpenFolder.
func Take(f *os.File) error { return lock(f, exclusive) }

// Look takes a shared lock of f: it fails while someone holds the exclusive
// lock, and several shared locks can exist.
func Look(f *os.File) error { return lock(f, 0) }

func lock(f *os.File, how uintptr) error {
	err := lockOnce(f, how)
	if !errors.Is(err, errViolation) {
		return err
	}
	// On Windows an opener blocks itself, so it first releases its own lock. If
	// the new lock fails, it has none, because another opener holds it.
	at := place()
	if ok, _, _ := unlockFile.Call(f.Fd(), 0, 1, 0, uintptr(unsafe.Pointer(&at))); ok == 0 {
		return ErrHeld
	}
	if err = lockOnce(f, how); errors.Is(err, errViolation) {
		return ErrHeld
	}
	return err
}

func lockOnce(f *os.File, how uintptr) error {
	at := place()
	if ok, _, err := lockFile.Call(f.Fd(), how|failImmediately, 0, 1, 0, uintptr(unsafe.Pointer(&at))); ok == 0 {
		return os.NewSyscallError("LockFileEx", err)
	}
	return nil
}

// place is the locked byte. Others cannot read a locked byte, so it is beyond the
// end of any file.
func place() syscall.Overlapped { return syscall.Overlapped{OffsetHigh: 1 << 30} }

// OpenFolder opens the file that carries a folder's lock. Windows cannot lock a
// folder itself: it is an empty file in the user's temporary folder, which stays.
// Each user of the machine has a separate one.
func OpenFolder(path string) (*os.File, error) {
	path, err := filepath.Abs(path)
	if err != nil {
		return nil, err
	}
	sum := sha256.Sum256([]byte(strings.ToLower(path)))
	return os.OpenFile(filepath.Join(os.TempDir(), fmt.Sprintf("signalbox-%x.lock", sum[:16])), os.O_RDWR|os.O_CREATE, 0o600)
}
