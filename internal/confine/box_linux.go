package confine

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"slices"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"
)

// Box is a place for one run at a time. It is a proc.Box.
type Box struct {
	h       *Host
	name    string
	members *group            // knows what lives in it; nil where there are no groups
	v1      map[string]*group // controller → group; several may be one
	renewed int
	tmp     string // its temporary folder, where the sandbox needs one

	launcher   *launcher
	stopAlways bool // hold a child at its first instruction though nothing asks for it

	mu       sync.Mutex // guards what follows against the keeper
	busy     bool       // between begin and Free
	starting bool
	leader   int
	cmd      *exec.Cmd
	limits   Limits
	sandbox  Sandbox
	kind     string // of the sandbox in force; "" none
	struck   []string
	before   counters // at begin
}

// newBox makes the groups of a box.
func (h *Host) newBox(name string) (*Box, error) {
	b := &Box{h: h, name: name, v1: map[string]*group{}}
	made := map[string]*group{}
	open := func(dir string) (*group, error) {
		if g := made[dir]; g != nil {
			return g, nil
		}
		g, err := makeGroup(at(dir, name))
		if errors.Is(err, fs.ErrNotExist) {
			if err = h.remake(dir); err == nil {
				g, err = makeGroup(at(dir, name))
			}
		}
		if err == nil {
			made[dir] = g
		}
		return g, err
	}
	var err error
	if h.members != "" {
		if b.members, err = open(h.members); err != nil {
			return nil, err
		}
	}
	for c, dir := range h.v1 {
		g, err := open(dir)
		if err != nil {
			b.retire()
			return nil, err
		}
		b.v1[c] = g
	}
	if err = b.groupKill(); err != nil {
		b.retire()
	}
	return b, err
}

// there tells whether nobody has removed the groups of an idle box, as a service
// manager does with empty ones where it has not been told that they are ours.
func (b *Box) there() bool {
	for _, g := range b.groups() {
		if _, err := os.Lstat(g.dir); err != nil {
			return false
		}
	}
	return true
}

// remake makes the group of all boxes again, as setUp left it.
func (h *Host) remake(dir string) error {
	all, err := makeGroup(dir)
	if err != nil {
		return err
	}
	defer all.close()
	if dir != h.members {
		return nil
	}
	if err := h.relock(); err != nil || !h.unified {
		return err
	}
	for _, w := range wanted {
		if h.by[w.limit] != byV2 {
			continue
		}
		if err := all.write("cgroup.subtree_control", "+"+w.controller); err != nil {
			return err
		}
	}
	return nil
}

// groups are all groups of the box.
func (b *Box) groups() []*group {
	var gs []*group
	if b.members != nil {
		gs = append(gs, b.members)
	}
	for _, g := range b.v1 {
		if !slices.Contains(gs, g) {
			gs = append(gs, g)
		}
	}
	return gs
}

// entered are the groups that the box's thread is in. Not that of cpu: when a
// child had used up its share, our thread would stand still with it.
func (b *Box) entered() []*group {
	var gs []*group
	for _, c := range []string{"memory", "pids", "cpuacct"} {
		if g := b.v1[c]; g != nil && g != b.v1["cpu"] && !slices.Contains(gs, g) {
			gs = append(gs, g)
		}
	}
	return gs
}

// joined are the groups that a child is moved into while it is held.
func (b *Box) joined() []*group {
	var gs []*group
	if b.members != nil && b.h.unified && !b.byFD() {
		gs = append(gs, b.members)
	}
	cpu := b.v1["cpu"]
	if cpu != nil && (b.limits.CPUs > 0 || cpu == b.v1["memory"] || cpu == b.v1["pids"] || cpu == b.v1["cpuacct"]) {
		gs = append(gs, cpu)
	}
	return gs
}

// byFD reports whether a child is born into its group, by clone3, which the
// filter that goes with Landlock refuses.
func (b *Box) byFD() bool { return b.h.byFD && b.kind != landlocked }

// begin readies an empty box for a run.
func (b *Box) begin(l Limits, s Sandbox, kind string) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if err := b.setLimits(l, kind); err != nil {
		return err
	}
	b.busy, b.limits, b.sandbox, b.kind = true, l, s, kind
	b.leader, b.cmd, b.struck = 0, nil, nil
	if b.members != nil && !b.h.unified {
		b.members.forget()
	}
	b.before = b.count()
	return nil
}

// Start starts cmd in the box: its limits hold, it can gain no privileges, and
// it is sandboxed, before its first instruction. It gets SIGKILL when this
// process dies. cmd may be changed.
func (b *Box) Start(cmd *exec.Cmd) error {
	kept, sent, err := b.wrap(cmd)
	if err != nil {
		return err
	}
	if sent != nil {
		defer sent.Close()
	}
	if err := b.readyLauncher(kept); err != nil {
		return err
	}
	p := plan{limits: b.h.rlimits(b.limits), join: b.joined()}
	if err := b.open(&p); err != nil {
		return err
	}
	b.mu.Lock()
	b.starting, b.cmd = true, cmd
	b.mu.Unlock()
	err = b.launcher.do(func() error { return b.start(cmd, p) })
	if err != nil && cmd.Process != nil {
		_ = cmd.Process.Kill()
		_ = cmd.Wait() // how it ended does not matter: it never ran as it should have
	}
	b.mu.Lock()
	b.starting = false
	if err == nil {
		b.leader = cmd.Process.Pid
	}
	b.mu.Unlock()
	return err
}

// readyLauncher sees that the box has a thread, and that Landlock leaves to it
// what this run may reach: it cannot be taken back.
func (b *Box) readyLauncher(kept *ruleset) error {
	key := kept.key()
	if b.launcher != nil && b.launcher.kept != key {
		b.launcher.stop()
		b.launcher = nil
	}
	if b.launcher != nil {
		return nil
	}
	l, err := newLauncher(b.entered())
	if err != nil {
		return err
	}
	if kept != nil {
		if err := l.do(kept.enforce); err != nil {
			l.stop()
			return fmt.Errorf("sandbox landlock: %w", err)
		}
		l.kept = key
	}
	b.launcher = l
	return nil
}

// plan is what a start does beyond what the thread passes on.
type plan struct {
	born   *os.File // the group that the child is born into, or nil
	join   []*group // those it is moved into while it is held
	limits []rlimit
}

// open opens what the start needs: the box's thread may be forbidden to.
func (b *Box) open(p *plan) (err error) {
	if b.members != nil && b.byFD() {
		if p.born, err = b.members.file(""); err != nil {
			return err
		}
	}
	for _, g := range p.join {
		if _, err := g.file("cgroup.procs"); err != nil {
			return err
		}
	}
	return nil
}

// start runs on the box's thread, which traces the child where it is held.
func (b *Box) start(cmd *exec.Cmd, p plan) error {
	a := cmd.SysProcAttr
	a.Pdeathsig = syscall.SIGKILL
	if p.born != nil {
		a.UseCgroupFD, a.CgroupFD = true, int(p.born.Fd())
	}
	hold := b.stopAlways || len(p.limits)+len(p.join) > 0
	a.Ptrace = hold && b.h.trace
	if err := cmd.Start(); err != nil || !hold {
		return err
	}
	return bind(cmd.Process.Pid, a.Ptrace, p)
}

// bind puts what could not be inherited on a child, and lets it go.
func bind(pid int, held bool, p plan) error {
	if held {
		if err := traceStop(pid); err != nil {
			return err
		}
	}
	applied := make(chan error)
	go func() { applied <- p.apply(pid) }() // a filter may keep the box's own thread from it
	err := <-applied
	if held {
		err = errors.Join(err, unix.PtraceDetach(pid))
	}
	if errors.Is(err, syscall.ESRCH) {
		return nil // it is dead already, which its end tells
	}
	return err
}

// apply moves a child into its groups and gives it its limits.
func (p plan) apply(pid int) error {
	var errs []error
	for _, g := range p.join {
		if err := g.write("cgroup.procs", fmt.Sprint(pid)); err != nil {
			errs = append(errs, fmt.Errorf("enter %s: %w", g.dir, err))
		}
	}
	for _, r := range p.limits {
		errs = append(errs, r.apply(pid))
	}
	return errors.Join(errs...)
}
