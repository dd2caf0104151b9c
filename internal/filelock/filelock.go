// Package filelock takes the kernel's lock on an open file or folder. Such a lock
// ends with its holder, so nothing is left behind by a dead process.
package filelock

import (
	"errors"
	"fmt"
	"os"
	"strings"
)

// ErrHeld says that another holder has the lock.
var ErrHeld = errors.New("another holds the lock")

// Sign writes the holder into a locked file. The lock does not need this text:
// it is for people who find the file locked.
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

// Holder returns who signed a file and when, as part of a sentence; if that is
// unknown, it returns otherwise.
func Holder(f *os.File, otherwise string) string {
	b := make([]byte, 300)
	n, _ := f.ReadAt(b, 0) // a read error gives otherwise
	who := strings.TrimSpace(string(b[:n]))
	if who == "" {
		return otherwise
	}
	if info, err := f.Stat(); err == nil {
		who += info.ModTime().UTC().Format(" since 2006-01-02T15:04:05Z")
	}
	return who
}
