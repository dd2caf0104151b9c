package sqlite

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/internal/filelock"
)

// fileLock keeps a second process out of the database.
type fileLock struct{ f *os.File }

func lockFile(path string) (*fileLock, error) {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return nil, unusable(path, err)
	}
	f, err := os.OpenFile(path+".lock", os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, unusable(path, err)
	}
	err = filelock.Take(f)
	if errors.Is(err, filelock.ErrHeld) {
		defer f.Close()
		return nil, held(path, f)
	}
	if err == nil {
		err = filelock.Sign(f)
	}
	if err != nil {
		f.Close()
		return nil, unusable(path, err)
	}
	return &fileLock{f}, nil
}

func held(path string, f *os.File) error {
	who := filelock.Holder(f, "another process")
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
