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

// Free returns the box. It kills the remaining processes. A box that cannot
// be emptied is not reused: the error then names the living processes, and
// Alive continues to report them.
func (b *Box) Free() error {
	b.mu.Lock()
	if !b.busy {
		b.mu.Unlock()
		return nil
	}
	b.busy = false // the keeper ignores it from now on
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

// settle waits until no zombie of the run would count among the processes of
// the next run.
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

// lean reports whether the memory left in the box, such as the cache of files
// that were read, is so small that the next run can have its whole limit.
func (b *Box) lean() bool {
	const much = 32 << 20
	return b.h.by[memory] != byV2 || b.members.counter("memory.current", "") < much
}

// retire releases everything that the box has. It must be empty.
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

// tempName is the prefix of a host's temporary folders.
func (h *Host) tempName() string { return h.o.Name + "-tmp-" }

// ownTemp creates the box's temporary folder.
func (b *Box) ownTemp() (err error) {
	if b.tmp == "" {
		b.tmp, err = os.MkdirTemp("", b.h.tempName())
	}
	return err
}

// clearTemp empties the folder for the next run.
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

// clearTemp removes the temporary folders that an earlier process left
// behind.
func (h *Host) clearTemp() {
	left, _ := filepath.Glob(filepath.Join(os.TempDir(), h.tempName()+"*"))
	for _, dir := range left {
		st, err := os.Lstat(dir)
		if err != nil || !st.IsDir() {
			continue
		}
		if sys, ok := st.Sys().(*syscall.Stat_t); ok && int(sys.Uid) == os.Getuid() {
			_ = os.RemoveAll(dir) // what cannot be removed does no harm
		}
	}
}

// withTemp sets the temporary folder in the program's environment.
func withTemp(env []string, tmp string) []string {
	env = slices.DeleteFunc(slices.Clone(env), func(v string) bool { return strings.HasPrefix(v, "TMPDIR=") })
	return append(env, "TMPDIR="+tmp)
}
