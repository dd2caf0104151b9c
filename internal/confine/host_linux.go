package confine

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"
)

const (
	// emptyWait bounds the time from SIGKILL to proof. A process that lives
	// longer hangs in the kernel and cannot be killed.
	emptyWait = 5 * time.Second
	// removeWait bounds the wait for the groups of dead processes.
	removeWait = 2 * time.Second
	// settleWait bounds the wait for zombies of orphans, which count among a
	// box's processes until they are collected.
	settleWait = 50 * time.Millisecond
	// maxIdle is how many idle boxes are kept for later runs.
	maxIdle = 64
)

// The limits, as named in Struck and Report.
const (
	memory    = "memory"
	cpus      = "cpus"
	cpuTime   = "cpu_time"
	processes = "processes"
	fileSize  = "file_size"
	openFiles = "open_files"
)

// What enforces a limit.
const (
	byV2     = "cgroup2"
	byRlimit = "rlimit"
)

// Host represents this machine's means of limiting child processes.
type Host struct {
	o      Options
	by     map[string]string // limit → what enforces it
	method string
	detail []string
	cure   string // for limits that are not enforced

	name    string   // of the group of all boxes: from the options, or a variant of it
	lock    *os.File // of that group, while this process lives
	members string   // the group of all boxes, which knows the living processes; "": none
	shown   string   // the same group as named in /proc/<pid>/cgroup

	byFD  bool // a child can be created in its group
	trace bool // a child can be stopped at its first instruction

	sandboxes sync.Once
	found     []SandboxReport // by probeSandboxes
	bwrap     string
	landlock  int
	netns     bool
	warned    sync.Once // for runs without the sandbox they ask for
	weak      sync.Once // for a weak sandbox

	mu     sync.Mutex
	idle   []*Box
	inUse  map[*Box]bool
	aside  []*Box // could not be emptied
	made   int
	closed bool
	wake   chan struct{}
	stop   chan struct{}
	kept   chan struct{} // closed when the keeper has ended
}

// Open chooses the best method, and kills, with proof, the processes that an
// earlier process of that name left in its boxes. It fails only if the method
// that Options ask for is not available.
func Open(o Options) (*Host, error) {
	if o.Name == "" || strings.ContainsAny(o.Name, "/\n") || o.Name[0] == '.' {
		return nil, fmt.Errorf("confine: %q cannot be the name of a control group", o.Name)
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	h := &Host{
		o: o, name: o.Name, by: map[string]string{}, inUse: map[*Box]bool{},
		wake: make(chan struct{}, 1), stop: make(chan struct{}), kept: make(chan struct{}),
	}
	if err := h.setUp(); err != nil {
		return nil, err
	}
	h.clearTemp()
	if err := h.probe(); err != nil {
		err = errors.Join(err, h.removeAll())
		h.unlock()
		return nil, err
	}
	go h.keep()
	return h, nil
}

// Take returns an empty box with these limits. The caller owns it until Free.
// An error says that the required sandbox is not available, or that the
// system provides no box.
func (h *Host) Take(l Limits, s Sandbox) (*Box, error) {
	kind, err := h.choose(s)
	if err != nil {
		return nil, err
	}
	b, err := h.box(func(b *Box) error { return b.begin(l, s, kind) })
	if err != nil {
		return nil, err
	}
	h.mu.Lock()
	h.inUse[b] = true
	h.mu.Unlock()
	select {
	case h.wake <- struct{}{}:
	default:
	}
	return b, nil
}

// box prepares an idle box, or a new one if that fails: a used box may hold
// more memory than the new limit allows.
func (h *Host) box(ready func(*Box) error) (*Box, error) {
	h.mu.Lock()
	if h.closed {
		h.mu.Unlock()
		return nil, errors.New("confine: the host is closed")
	}
	var b *Box
	if n := len(h.idle); n > 0 {
		b, h.idle = h.idle[n-1], h.idle[:n-1]
	}
	h.mu.Unlock()
	if b != nil {
		if b.there() && ready(b) == nil {
			return b, nil
		}
		b.retire()
	}
	b, err := h.newBox(h.newName())
	if err == nil {
		if err = ready(b); err != nil {
			b.retire()
		}
	}
	if err != nil {
		return nil, fmt.Errorf("confine: no box for a run: %w", err)
	}
	return b, nil
}

// newName is a name that no box has, including those that could not be
// emptied.
func (h *Host) newName() string {
	h.mu.Lock()
	defer h.mu.Unlock()
	for {
		h.made++
		name := fmt.Sprintf("box-%d", h.made)
		if h.members == "" {
			return name
		}
		if _, err := os.Lstat(at(h.members, name)); err != nil {
			return name
		}
	}
}

// putBack takes a box out of use. Only a clean one is reused.
func (h *Host) putBack(b *Box, clean bool) {
	h.mu.Lock()
	delete(h.inUse, b)
	keep := clean && !h.closed && len(h.idle) < maxIdle
	if keep {
		h.idle = append(h.idle, b)
	}
	h.mu.Unlock()
	if !keep {
		b.retire()
	}
}

// setAside keeps a box that could not be emptied, with its thread, out of use.
func (h *Host) setAside(b *Box) {
	h.mu.Lock()
	delete(h.inUse, b)
	h.aside = append(h.aside, b)
	h.mu.Unlock()
}

// used lists the boxes in use.
func (h *Host) used() []*Box {
	h.mu.Lock()
	defer h.mu.Unlock()
	boxes := make([]*Box, 0, len(h.inUse))
	for b := range h.inUse {
		boxes = append(boxes, b)
	}
	return boxes
}

// Close releases what the host created. All boxes must be free.
func (h *Host) Close() error {
	h.mu.Lock()
	if h.closed {
		h.mu.Unlock()
		return nil
	}
	if n := len(h.inUse); n > 0 {
		h.mu.Unlock()
		return fmt.Errorf("confine: %d boxes are still in use", n)
	}
	h.closed = true
	boxes := append(h.idle, h.aside...)
	h.idle, h.aside = nil, nil
	h.mu.Unlock()
	close(h.stop)
	<-h.kept
	var errs []error
	for _, b := range boxes {
		if b.empty() == nil {
			b.retire()
		} else {
			errs = append(errs, fmt.Errorf("confine: processes %v live on in %s", b.pids(), b.name))
		}
	}
	err := h.removeAll()
	h.unlock()
	return errors.Join(append(errs, err)...)
}

// removeAll removes the group of all boxes, so that the name is free again.
func (h *Host) removeAll() error {
	if h.members == "" {
		return nil
	}
	return groupAt(h.members).remove()
}

// at is the directory of a box in a group of all boxes.
func at(dir, box string) string { return filepath.Join(dir, box) }

// probe finds out how a child gets into its group, with a program that does
// nothing.
func (h *Host) probe() error {
	h.byFD, h.trace = h.members != "", true
	path, _ := exec.LookPath("true")
	if path == "" {
		return nil // there is no harmless program to try: the first run shows
	}
	try := func(trace bool) error {
		b, err := h.box(func(b *Box) error { return b.begin(Limits{}, Sandbox{}, "") })
		if err != nil {
			return err
		}
		b.stopAlways = trace
		defer func() { b.stopAlways = false }()
		ctx, cancel := context.WithTimeout(context.Background(), probeWait)
		defer cancel()
		cmd := exec.CommandContext(ctx, path)
		if err = b.Start(cmd); err == nil {
			err = cmd.Wait()
		}
		return errors.Join(err, b.Free())
	}
	err := try(true)
	if errors.Is(err, syscall.EPERM) {
		h.trace = false
		h.note("ptrace is refused: limits of single processes, and in Landlock those of the group, hold from just after their start")
	}
	err = try(false)
	if err != nil && h.byFD {
		h.byFD = false
		err = try(true)
	}
	if err != nil && h.members != "" && h.o.Method != byV2 {
		h.note("no child can be started in a control group: %v", reason(err))
		err = h.withoutGroups()
	}
	if err != nil {
		return fmt.Errorf("confine: no program can be started in a box: %w", err)
	}
	return nil
}

// withoutGroups continues with rlimits only.
func (h *Host) withoutGroups() error {
	h.mu.Lock()
	boxes := h.idle
	h.idle = nil
	h.mu.Unlock()
	for _, b := range boxes {
		b.retire()
	}
	err := h.removeAll()
	h.unlock()
	h.by, h.members, h.method = map[string]string{}, "", byRlimit
	h.fillRlimits()
	return err
}

// Report returns what was found.
func (h *Host) Report() Report {
	r := Report{Method: h.method, Detail: strings.Join(h.detail, "; "), NoNewPrivs: true, Tracked: h.members != "", Cure: h.cure, Sandbox: h.sandboxReport()}
	for _, name := range []string{memory, cpus, cpuTime, processes, fileSize, openFiles} {
		r.Limits = append(r.Limits, LimitReport{Name: name, By: h.by[name], Note: h.limitNote(name)})
	}
	return r
}

// cureOf says how to enable control groups on this machine. If their
// controllers are in version 1, which is not used, a director in version 2 has
// none.
func cureOf(o Options, t tree) string {
	switch {
	case o.Method == byRlimit:
		return "set commands.limits to auto: control groups are used where they can be had"
	case t.older && o.Method != byV2:
		return "boot this machine with control groups of version 2 (systemd.unified_cgroup_hierarchy=1 on the kernel's command line): those of version 1 are not used"
	case t.own != "":
		return "run the director where it may make control groups (as root, in a container with a delegated group, or under systemd with Delegate=yes)"
	}
	return "run the director where there are control groups, mounted at /sys/fs/cgroup"
}

// limitNote says what a limit does not cover.
func (h *Host) limitNote(name string) string {
	by := h.by[name]
	switch {
	case name == cpus && by == "":
		return "needs control groups"
	case name == processes && by == "" && os.Getuid() == 0:
		return "needs control groups: the limit of a user does not bind root"
	case name == processes && by == byRlimit:
		return "counts all processes of the user: as many more as there are at the start"
	case name == memory && by == byRlimit:
		return "address space of each process"
	case name == cpuTime && by == byRlimit:
		return "of each process, in whole seconds"
	case by == byRlimit && !h.trace:
		return "set just after the start: ptrace is refused"
	}
	return ""
}
