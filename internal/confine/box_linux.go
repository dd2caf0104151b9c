package confine

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"runtime"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"
)

// Box is a place for one run at a time. It implements proc.Box.
type Box struct {
	h       *Host
	name    string
	members *group // its control group, which knows all living processes; nil: there are no control groups
	renewed int
	tmp     string // temporary folder, if the sandbox needs one

	launcher   *launcher
	stopAlways bool // always stop a child at its first instruction

	mu       sync.Mutex // guards the following fields against the keeper
	busy     bool       // from begin to Free
	starting bool
	leader   int
	cmd      *exec.Cmd
	limits   Limits
	sandbox  Sandbox
	kind     string // of the active sandbox; "": none
	struck   []string
	before   counters // at begin
}

// newBox creates the group of a box.
func (h *Host) newBox(name string) (*Box, error) {
	b := &Box{h: h, name: name}
	if h.members == "" {
		return b, nil
	}
	var err error
	if b.members, err = makeGroup(at(h.members, name)); errors.Is(err, fs.ErrNotExist) {
		if err = h.remake(); err == nil {
			b.members, err = makeGroup(at(h.members, name))
		}
	}
	if err != nil {
		return nil, err
	}
	if err = b.groupKill(); err != nil {
		b.retire()
	}
	return b, err
}

// there reports whether the group of an idle box still exists. A service
// manager may remove empty groups if it does not know that they belong to us.
func (b *Box) there() bool {
	if b.members == nil {
		return true
	}
	_, err := os.Lstat(b.members.dir)
	return err == nil
}

// remake creates the group of all boxes again, as setUp left it.
func (h *Host) remake() error {
	all, err := makeGroup(h.members)
	if err != nil {
		return err
	}
	defer all.close()
	if err := h.relock(); err != nil {
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

// byFD reports whether a child is created in its group, by clone3. The filter
// that is used with Landlock refuses clone3.
func (b *Box) byFD() bool { return b.h.byFD && b.kind != landlocked }

// begin prepares an empty box for a run.
func (b *Box) begin(l Limits, s Sandbox, kind string) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if err := b.setLimits(l, kind); err != nil {
		return err
	}
	b.busy, b.limits, b.sandbox, b.kind = true, l, s, kind
	b.leader, b.cmd, b.struck = 0, nil, nil
	b.before = b.count()
	return nil
}

// Start starts cmd in the box. Before its first instruction its limits apply,
// it cannot gain privileges, and it is sandboxed. It gets SIGKILL when this
// process dies. Start may modify cmd.
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
	p := plan{limits: b.h.rlimits(b.limits)}
	if err := b.open(&p); err != nil {
		return err
	}
	b.mu.Lock()
	b.starting, b.cmd = true, cmd
	b.mu.Unlock()
	err = b.launcher.do(func() error { return b.start(cmd, p) })
	if err != nil && cmd.Process != nil {
		_ = cmd.Process.Kill()
		_ = cmd.Wait() // how it ended does not matter: it never ran
	}
	b.mu.Lock()
	b.starting = false
	if err == nil {
		b.leader = cmd.Process.Pid
	}
	b.mu.Unlock()
	return err
}

// readyLauncher makes sure that the box has a thread, and that Landlock allows
// the thread what this run needs: restrictions cannot be undone.
func (b *Box) readyLauncher(kept *ruleset) error {
	key := kept.key()
	if b.launcher != nil && b.launcher.kept != key {
		b.launcher.stop()
		b.launcher = nil
	}
	if b.launcher != nil {
		return nil
	}
	l, err := newLauncher()
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

// plan is the part of a start beyond what the thread passes on.
type plan struct {
	born   *os.File // the group in which the child is created, or nil
	join   *group   // the group into which it is moved while it is stopped, or nil
	limits []rlimit
}

// open opens the files for the start: the box's thread may not be allowed to.
func (b *Box) open(p *plan) (err error) {
	switch {
	case b.members == nil:
	case b.byFD():
		p.born, err = b.members.file("")
	default:
		p.join = b.members
		_, err = p.join.file("cgroup.procs")
	}
	return err
}

// start runs on the box's thread, which traces the child if it must be
// stopped.
func (b *Box) start(cmd *exec.Cmd, p plan) error {
	a := cmd.SysProcAttr
	a.Pdeathsig = syscall.SIGKILL
	if p.born != nil {
		a.UseCgroupFD, a.CgroupFD = true, int(p.born.Fd())
	}
	hold := b.stopAlways || p.join != nil || len(p.limits) > 0
	a.Ptrace = hold && b.h.trace
	if err := cmd.Start(); err != nil || !hold {
		return err
	}
	return bind(cmd.Process.Pid, a.Ptrace, p)
}

// bind applies to a child what it could not inherit, and lets it run.
func bind(pid int, held bool, p plan) error {
	if held {
		if err := traceStop(pid); err != nil {
			return err
		}
	}
	applied := make(chan error)
	go func() { applied <- p.apply(pid) }() // a filter may forbid this to the box's own thread
	err := <-applied
	if held {
		err = errors.Join(err, unix.PtraceDetach(pid))
	}
	if errors.Is(err, syscall.ESRCH) {
		return nil // it is already dead, which its end shows
	}
	return err
}

// apply moves a child into its group and sets its limits.
func (p plan) apply(pid int) error {
	var errs []error
	if p.join != nil {
		if err := p.join.write("cgroup.procs", fmt.Sprint(pid)); err != nil {
			errs = append(errs, fmt.Errorf("enter %s: %w", p.join.dir, err))
		}
	}
	for _, r := range p.limits {
		errs = append(errs, r.apply(pid))
	}
	return errors.Join(errs...)
}

// launcher is the thread that starts the programs of a box. The runtime
// creates no threads from it, so that what it gave up affects only it and its
// children.
type launcher struct {
	work chan func()
	gone chan struct{}
	kept string // what Landlock allows it, as landlockKey; "" is everything
}

// newLauncher starts a thread that cannot gain privileges.
func newLauncher() (*launcher, error) {
	l := &launcher{work: make(chan func()), gone: make(chan struct{})}
	go l.run(nil)
	if err := l.do(giveUpPrivileges); err != nil {
		l.stop()
		return nil, err
	}
	return l, nil
}

func giveUpPrivileges() error {
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return fmt.Errorf("no_new_privs: %w", err)
	}
	return nil
}

// run serves on a thread that is not the first of the process: the first one
// represents the process in the kernel (for example in memory accounting), and
// cannot end.
func (l *launcher) run(elsewhere chan<- struct{}) {
	runtime.LockOSThread()
	if unix.Gettid() == os.Getpid() {
		taken := make(chan struct{})
		go l.run(taken)
		<-taken // by then the other goroutine has another thread
		runtime.UnlockOSThread()
		return
	}
	if elsewhere != nil {
		close(elsewhere)
	}
	defer close(l.gone)
	for f := range l.work {
		f()
	}
	// The goroutine ends locked, so the thread ends too.
}

// do runs f on the thread.
func (l *launcher) do(f func() error) error {
	done := make(chan error)
	l.work <- func() { done <- f() }
	return <-done
}

// stop ends the thread. No process that it started may be alive.
func (l *launcher) stop() {
	close(l.work)
	<-l.gone
}
