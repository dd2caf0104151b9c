package director

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/signalbox-ai/signalbox/internal/filelock"
)

// dataLock keeps a data folder to one director. A database file in it does that by
// itself; over a shared store, two directors would write the same key file, ledger of
// runs and list of child agents.
type dataLock struct{ f *os.File }

const lockName = "director.lock"

func lockData(dir string) (*dataLock, error) {
	path := filepath.Join(dir, lockName)
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, fmt.Errorf("data folder: %w", err)
	}
	err = filelock.Take(f)
	if errors.Is(err, filelock.ErrHeld) {
		defer f.Close()
		who := filelock.Holder(f, "another director")
		return nil, fmt.Errorf("the data folder %s is that of %s, which runs: give each director a folder of its own with --data, or stop that one first", dir, who)
	}
	if err == nil {
		err = filelock.Sign(f)
	}
	if err != nil {
		f.Close()
		return nil, fmt.Errorf("data folder: lock %s: %w", path, err)
	}
	return &dataLock{f}, nil
}

// release gives the folder to the next one.
func (l *dataLock) release() {
	if l != nil {
		_ = l.f.Close() // the lock goes with it
	}
}
