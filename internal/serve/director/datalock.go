package director

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/signalbox-ai/signalbox/internal/filelock"
)

// lockData locks a data folder, so that only one director uses it. A database file in it
// has a lock of its own; but with a shared store, two directors would write the same key
// file, ledger of runs and list of child agents. Closing the file unlocks the folder.
func lockData(dir string) (*os.File, error) {
	path := filepath.Join(dir, "director.lock")
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, fmt.Errorf("data folder: %w", err)
	}
	if err = filelock.Take(f); err == nil {
		err = filelock.Sign(f)
	}
	switch {
	case err == nil:
		return f, nil
	case errors.Is(err, filelock.ErrHeld):
		err = fmt.Errorf("the data folder %s is in use by %s: give each director a folder of its own with --data, or stop that one first", dir, filelock.Holder(f, "another director"))
	default:
		err = fmt.Errorf("data folder: lock %s: %w", path, err)
	}
	return nil, errors.Join(err, f.Close())
}
