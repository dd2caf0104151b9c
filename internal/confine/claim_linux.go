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

// maxNames is how many living processes may open hosts of one name.
const maxNames = 100

// claim makes the group of all boxes, and locks it while this process lives: a
// second process of the same name takes another, and does not take the first
// one's runs for leftovers.
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
			continue // a living one's, or full of what cannot be killed
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

// sweep kills what dead processes of our name left, and removes the empty
// groups of other dead ones.
func (h *Host) sweep(parent string) {
	family, _, ok := strings.Cut(h.o.Name, "-")
	entries, _ := os.ReadDir(parent)
	for _, e := range entries {
		name, dir := e.Name(), filepath.Join(parent, e.Name())
		ours := name == h.o.Name || strings.HasPrefix(name, h.o.Name+".")
		if !e.IsDir() || name == directorLeaf || !ours && !(ok && strings.HasPrefix(name, family+"-")) {
			continue
		}
		// Where something lives, the lock is its director's alone: if we held it for
		// a moment, a director that starts again then would take another name, and
		// let live what it left.
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
			_ = removeTree(dir) // somebody may have come: then it stays
		}
		lock.Close()
	}
}

// relock locks the group of all boxes where it was made again.
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

// lockDir locks a directory. The lock goes with this process.
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

// stillAt fails where a directory was removed meanwhile.
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

// unlock lets another process have the name.
func (h *Host) unlock() {
	if h.lock != nil {
		h.lock.Close()
		h.lock = nil
	}
}
