// Package filelock takes the kernel's lock on an open file or folder. Such a lock
// ends with its holder, so what a dead process left behind is in nobody's way.
package filelock

import (
	"errors"
	"fmt"
	"os"
	"strings"
)

// ErrHeld says that another holds the lock.
var ErrHeld = errors.New("another holds the lock")

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
