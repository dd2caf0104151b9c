package confine

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
)

// maxNames is how many living processes may open hosts of one name.
const maxNames = 100

// claim makes the group of all boxes, and locks it while this process lives: a
// second process of the same name takes another, and does not take the first
// one's runs for leftovers.
func (h *Host) claim(parent string, unified bool, trees []tree) (string, error) {
	h.sweep(parent, unified, trees)
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
// groups of other dead ones. A group of all boxes goes last: while it is there
// and locked by us, nobody can take its name, and with it the groups of that
// name in other hierarchies.
func (h *Host) sweep(parent string, unified bool, trees []tree) {
	family, _, ok := strings.Cut(h.o.Name, "-")
	entries, _ := os.ReadDir(parent)
	for _, e := range entries {
		name, dir := e.Name(), filepath.Join(parent, e.Name())
		ours := name == h.o.Name || strings.HasPrefix(name, h.o.Name+".")
		if !e.IsDir() || name == directorLeaf || !ours && !(ok && strings.HasPrefix(name, family+"-")) {
			continue
		}
		lock, err := lockDir(dir)
		if err != nil {
			continue // its process lives
		}
		g := groupAt(dir)
		if some, err := populated(g, unified); ours || err == nil && !some {
			for _, t := range trees {
				if other := filepath.Join(t.own, name); t.version == 1 && other != dir {
					h.clear(other, false)
				}
			}
			h.clear(dir, unified)
		}
		g.close()
		lock.Close()
	}
}

// lockDir locks a directory. The lock goes with this process.
func lockDir(dir string) (*os.File, error) {
	f, err := os.Open(dir)
	if err != nil {
		return nil, err
	}
	err = unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB)
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
