package confine

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"
)

// Free gives the box back. It kills what still lives in it, and a box that
// cannot be emptied is not used again: then the error names what lives, and
// Alive goes on telling.
func (b *Box) Free() error {
	b.mu.Lock()
	if !b.busy {
		b.mu.Unlock()
		return nil
	}
	b.busy = false // the keeper looks at it no more
	b.mu.Unlock()
	if err := b.empty(); err != nil {
		b.h.setAside(b)
		return err
	}
	clean := b.settle() && b.clearTemp() == nil && b.lean()
	b.mu.Lock()
	b.cmd, b.leader = nil, 0
	b.mu.Unlock()
	clean = clean && b.renew() == nil
	b.h.putBack(b, clean)
	return nil
}

// settle waits until no dead process of the run is left that would count among
// the processes of the next one.
func (b *Box) settle() bool {
	if b.h.by[processes] != byV2 {
		b.h.reap()
		return true
	}
	if b.members.counter("pids.current", "") == 0 {
		return true
	}
	deadline := time.Now().Add(settleWait)
	for {
		b.h.reap()
		if b.members.counter("pids.current", "") == 0 {
			return true
		}
		if time.Now().After(deadline) {
			return false
		}
		time.Sleep(time.Millisecond)
	}
}

// lean tells whether so little memory is left in the box, such as files that
// were read, that the next run can have its whole limit.
func (b *Box) lean() bool {
	const much = 32 << 20
	return b.h.by[memory] != byV2 || b.members.counter("memory.current", "") < much
}

// retire gives back all that the box has. Nothing lives in it.
func (b *Box) retire() {
	if b.launcher != nil {
		b.launcher.stop()
		b.launcher = nil
	}
	if b.tmp != "" {
		_ = os.RemoveAll(b.tmp) // a folder of the run, in the system's temporary folder
	}
	if b.members == nil {
		return
	}
	if err := b.members.remove(); err != nil {
		b.h.o.Log.Warn("A control group could not be removed", "error", err)
	}
}

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
