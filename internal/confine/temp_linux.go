package confine

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
)

// tempName begins the names of a host's temporary folders.
func (h *Host) tempName() string { return h.o.Name + "-tmp-" }

// ownTemp makes the box's temporary folder.
func (b *Box) ownTemp() (err error) {
	if b.tmp == "" {
		b.tmp, err = os.MkdirTemp("", b.h.tempName())
	}
	return err
}

// clearTemp empties it for the next run.
func (b *Box) clearTemp() error {
	if b.tmp == "" {
		return nil
	}
	entries, err := os.ReadDir(b.tmp)
	for _, e := range entries {
		err = errors.Join(err, os.RemoveAll(filepath.Join(b.tmp, e.Name())))
	}
	return err
}

// clearTemp removes the temporary folders that an earlier process left.
func (h *Host) clearTemp() {
	left, _ := filepath.Glob(filepath.Join(os.TempDir(), h.tempName()+"*"))
	for _, dir := range left {
		st, err := os.Lstat(dir)
		if err != nil || !st.IsDir() {
			continue
		}
		if sys, ok := st.Sys().(*syscall.Stat_t); ok && int(sys.Uid) == os.Getuid() {
			_ = os.RemoveAll(dir) // what cannot be removed harms nobody
		}
	}
}

// withTemp names the temporary folder to the program.
func withTemp(env []string, tmp string) []string {
	env = slices.DeleteFunc(slices.Clone(env), func(v string) bool { return strings.HasPrefix(v, "TMPDIR=") })
	return append(env, "TMPDIR="+tmp)
}
