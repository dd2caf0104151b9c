package confine

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/signalbox-ai/signalbox/internal/filelock"
)

// maxNames is how many living processes may open hosts with the same name.
const maxNames = 100

// claim creates the group of all boxes, and locks it while this process lives.
// A second process of the same name takes another group, and does not mistake
// the first one's runs for leftovers.
func (h *Host) claim(parent string) (string, error) {
	h.sweep(parent)
	for n := 1; n <= maxNames; n++ {
		name := h.o.Name
		if n > 1 {
			name = fmt.Sprintf("%s.%d", name, n)
		}
		dir := filepath.Join(parent, name)
		err := os.Mkdir(dir, 0o750)
		if errors.Is(err, fs.ErrExist) {
			continue // in use by a living process, or it has processes that cannot be killed
		}
		if err != nil {
			return "", err
		}
		if h.lock, err = lockDir(dir); err == nil {
			h.name = name
			return dir, nil
		}
	}
	return "", fmt.Errorf("%s has %d groups named %s already", parent, maxNames, h.o.Name)
}

// sweep kills what dead processes of our name left behind, and removes the
// empty groups of other dead processes.
func (h *Host) sweep(parent string) {
	family, _, ok := strings.Cut(h.o.Name, "-")
	entries, _ := os.ReadDir(parent)
	for _, e := range entries {
		name, dir := e.Name(), filepath.Join(parent, e.Name())
		ours := name == h.o.Name || strings.HasPrefix(name, h.o.Name+".")
		if !e.IsDir() || name == directorLeaf || !ours && !(ok && strings.HasPrefix(name, family+"-")) {
			continue
		}
		// A group with living processes is left to its own director: if we held the
		// lock even for a moment, a restarting director would take another name and
		// leave its old processes alive.
		if !ours && len(pidsBelow(dir)) > 0 {
			continue
		}
		lock, err := lockDir(dir)
		if err != nil {
			continue // its process lives
		}
		if ours {
			h.clear(dir)
		} else {
			_ = removeTree(dir) // a new process may have appeared: then it stays
		}
		lock.Close()
	}
}

// relock locks the group of all boxes if it was created again.
func (h *Host) relock() error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.lock != nil && stillAt(h.lock, h.members) == nil {
		return nil
	}
	lock, err := lockDir(h.members)
	if err != nil {
		return fmt.Errorf("lock %s: %w", h.members, err)
	}
	h.unlock()
	h.lock = lock
	return nil
}

// lockDir locks a directory until this process ends.
func lockDir(dir string) (*os.File, error) {
	f, err := os.Open(dir)
	if err != nil {
		return nil, err
	}
	err = filelock.Take(f)
	if err == nil {
		err = stillAt(f, dir)
	}
	if err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}

// stillAt fails if a directory was removed in the meantime.
func stillAt(f *os.File, dir string) error {
	have, err := f.Stat()
	if err != nil {
		return err
	}
	now, err := os.Stat(dir)
	if err == nil && !os.SameFile(have, now) {
		err = fs.ErrNotExist
	}
	return err
}

// unlock makes the name available to other processes.
func (h *Host) unlock() {
	if h.lock != nil {
		h.lock.Close()
		h.lock = nil
	}
}
