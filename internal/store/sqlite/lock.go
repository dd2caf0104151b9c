package sqlite

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/signalbox-ai/signalbox"
)

// fileLock keeps a second process out of the database. The lock is the
// kernel's and ends with its holder, so what a dead process left behind is no
// obstacle; the text in the file only says who holds it.
type fileLock struct{ f *os.File }

func lockFile(path string) (*fileLock, error) {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return nil, unusable(path, err)
	}
	f, err := os.OpenFile(path+".lock", os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, unusable(path, err)
	}
	for {
		err = unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB)
		if !errors.Is(err, unix.EINTR) {
			break
		}
	}
	if errors.Is(err, unix.EWOULDBLOCK) {
		defer f.Close()
		return nil, held(path, f)
	}
	if err == nil {
		err = sign(f)
	}
	if err != nil {
		f.Close()
		return nil, unusable(path, err)
	}
	return &fileLock{f}, nil
}

// sign writes who holds the lock.
func sign(f *os.File) error {
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

func held(path string, f *os.File) error {
	b := make([]byte, 300)
	n, err := f.ReadAt(b, 0)
	who := strings.TrimSpace(string(b[:n]))
	if st, serr := f.Stat(); serr == nil && who != "" {
		who += st.ModTime().UTC().Format(" since 2006-01-02T15:04:05Z")
	}
	if who == "" || (err != nil && n == 0) {
		who = "another process"
	}
	return signalbox.Errorf(signalbox.CodeConflict, "%s is in use by %s: stop it first, or choose another folder with --data", path, who)
}

func (l *fileLock) release() { l.f.Close() }

func checkPath(path string) error {
	if path == "" {
		return signalbox.Invalid("path", "the path of the database is empty: give a file, such as ~/.signalbox/signalbox.db")
	}
	if strings.ContainsRune(path, 0) {
		return signalbox.Invalid("path", "the path %q of the database contains a NUL character", path)
	}
	if info, err := os.Stat(path); err == nil && !info.Mode().IsRegular() {
		return signalbox.Invalid("path", "%s is not a file: give the path of the database file, not of its folder", path)
	}
	return nil
}

func unusable(path string, err error) error {
	return &signalbox.Error{
		Code: signalbox.CodeStoreFailed, Err: err,
		Message: fmt.Sprintf("the database %s cannot be used: make its folder writable for this user, or choose another with --data", path),
	}
}
