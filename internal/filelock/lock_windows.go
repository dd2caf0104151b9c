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

// The package wants nothing but the standard library, which does not have these.
var (
	kernel     = syscall.NewLazyDLL("kernel32.dll")
	lockFile   = kernel.NewProc("LockFileEx")
	unlockFile = kernel.NewProc("UnlockFileEx")
)

// Of winbase.h and winerror.h.
const (
	failImmediately = 1
	exclusive       = 2
	errViolation    = syscall.Errno(33) // ERROR_LOCK_VIOLATION
)

// Take takes the lock of f for this opener alone, without waiting for it. It goes
// when f is closed. It is of a file, not of a folder: see OpenFolder.
func Take(f *os.File) error { return lock(f, exclusive) }

// Look takes the lock of f beside others that look: it fails where somebody took
// the lock, and two who look do not see each other.
func Look(f *os.File) error { return lock(f, 0) }

func lock(f *os.File, how uintptr) error {
	err := lockOnce(f, how)
	if !errors.Is(err, errViolation) {
		return err
	}
	// An opener is in its own way here: what it has it gives up first. It has
	// nothing where that fails, so that another holds the lock.
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

// place is the byte that is locked: nobody else can read a byte that is, so it is
// one that no file has.
func place() syscall.Overlapped { return syscall.Overlapped{OffsetHigh: 1 << 30} }

// OpenFolder opens what stands for a folder where its lock is taken. A folder itself
// cannot be locked here: it is an empty file in the user's temporary folder, which
// stays. Another user of the machine has another one.
func OpenFolder(path string) (*os.File, error) {
	path, err := filepath.Abs(path)
	if err != nil {
		return nil, err
	}
	sum := sha256.Sum256([]byte(strings.ToLower(path)))
	return os.OpenFile(filepath.Join(os.TempDir(), fmt.Sprintf("signalbox-%x.lock", sum[:16])), os.O_RDWR|os.O_CREATE, 0o600)
}
