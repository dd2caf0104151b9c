package confine

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

const (
	// keepEvery is the interval at which the usage of the boxes is checked.
	keepEvery = 100 * time.Millisecond
	// reapEvery is the interval at which zombies of orphans are collected.
	reapEvery = time.Second
	// lastLooks is for how many checks the keeper stays awake after the last box
	// was freed: a killed process takes a moment to die.
	lastLooks = 3
)

// keep ends runs above a limit that the kernel only counts, and collects
// zombies of orphans that became children of this process. It sleeps while no
// box is in use.
func (h *Host) keep() {
	defer close(h.kept)
	t := time.NewTicker(keepEvery)
	defer t.Stop()
	idle := 0
	for n := 0; ; n++ {
		boxes := h.used()
		if idle++; len(boxes) > 0 {
			idle = 0
		}
		if idle > lastLooks {
			t.Stop()
			select {
			case <-h.stop:
				return
			case <-h.wake:
				t.Reset(keepEvery)
				idle = 0
			}
		}
		select {
		case <-h.stop:
			return
		case <-t.C:
		}
		for _, b := range boxes {
			b.enforce()
		}
		if n%int(reapEvery/keepEvery) == 0 || idle == lastLooks {
			h.reap()
		}
	}
}

// enforce kills a run above a limit.
func (b *Box) enforce() {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.busy && b.members != nil && (b.limits.CPUTime > 0 || b.limits.Memory > 0) && b.look() {
		_ = kill(b.members) // the next check tries again
	}
}

// reap collects zombies of orphans from the boxes that became children of
// this process, because it is a subreaper or PID 1. Other children are left
// to whoever started them.
func (h *Host) reap() {
	if h.members == "" || !childDied() {
		return
	}
	dead := map[int]string{}
	for _, pid := range children() {
		if name, ok := h.boxOfZombie(pid); ok {
			dead[pid] = name
		}
	}
	if len(dead) == 0 {
		return
	}
	// Only now: a box taken after the list of children was read has none of these
	// zombies, and of a box taken before, the program, which only proc may
	// collect, is known.
	boxes := map[string]*Box{}
	for _, b := range h.used() {
		boxes[b.place()] = b
	}
	for pid, name := range dead {
		if b := boxes[name]; b == nil || b.orphan(pid) {
			collect(pid)
		}
	}
}

// childDied reports whether any child is dead and not yet collected, whoever started
// it. That takes one system call; listing the children takes several per thread.
func childDied() bool {
	var info unix.Siginfo
	for {
		err := unix.Waitid(unix.P_ALL, 0, &info, unix.WEXITED|unix.WNOHANG|unix.WNOWAIT, nil)
		if !errors.Is(err, unix.EINTR) {
			return err == nil && info.Signo != 0
		}
	}
}

func collect(pid int) {
	var ws syscall.WaitStatus
	_, _ = syscall.Wait4(pid, &ws, syscall.WNOHANG, nil) // if someone else has collected it: ECHILD
}

// place is the name of the box's current group.
func (b *Box) place() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return filepath.Base(b.members.dir)
}

// orphan reports whether a process is not the one with which the box was
// started.
func (b *Box) orphan(pid int) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return !b.starting && b.leader != pid
}

// boxOfZombie returns the box of a dead child.
func (h *Host) boxOfZombie(pid int) (string, bool) {
	if stat(pid).state != "Z" {
		return "", false
	}
	b, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/cgroup")
	if err != nil {
		return "", false
	}
	for line := range strings.Lines(string(b)) {
		path, ok := strings.CutPrefix(strings.TrimSpace(line), "0::")
		if !ok {
			continue
		}
		rest, ok := strings.CutPrefix(strings.TrimSuffix(path, " (deleted)"), strings.TrimSuffix(h.shown, "/")+"/")
		name, _, _ := strings.Cut(rest, "/")
		return name, ok
	}
	return "", false
}

// children lists our children of all threads.
func children() []int {
	threads, _ := os.ReadDir("/proc/self/task")
	var pids []int
	for _, t := range threads {
		b, err := os.ReadFile("/proc/self/task/" + t.Name() + "/children")
		if errors.Is(err, fs.ErrNotExist) && !listsChildren() {
			return childrenByStat()
		}
		for f := range bytes.FieldsSeq(b) {
			if pid, err := strconv.Atoi(string(f)); err == nil {
				pids = append(pids, pid)
			}
		}
	}
	return pids
}

// listsChildren reports whether the kernel has these lists; a thread that has
// ended has none either.
var listsChildren = sync.OnceValue(func() bool {
	_, err := os.Stat("/proc/thread-self/children")
	return err == nil
})

// childrenByStat is for kernels without these lists.
func childrenByStat() []int {
	var pids []int
	entries, _ := os.ReadDir("/proc")
	for _, e := range entries {
		if pid, err := strconv.Atoi(e.Name()); err == nil {
			if stat(pid).ppid == os.Getpid() {
				pids = append(pids, pid)
			}
		}
	}
	return pids
}

// status is an entry of the process table.
type status struct {
	state string
	ppid  int
}

// stat reads an entry. The name in it is in parentheses and may contain
// anything.
func stat(pid int) status {
	b, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return status{}
	}
	f := strings.Fields(string(b[bytes.LastIndexByte(b, ')')+1:]))
	if len(f) < 2 {
		return status{}
	}
	ppid, _ := strconv.Atoi(f[1])
	return status{f[0], ppid}
}

// descends reports whether a process is this one or a descendant.
func descends(pid int) bool {
	for range 1000 {
		if pid == os.Getpid() {
			return true
		}
		if pid <= 1 {
			return false
		}
		pid = stat(pid).ppid
	}
	return false
}
