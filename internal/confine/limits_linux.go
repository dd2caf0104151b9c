package confine

import (
	"errors"
	"io/fs"
	"path/filepath"
	"strconv"
	"syscall"
	"time"
)

// cpuPeriod is the time, in microseconds, in which a share of a core is used.
const cpuPeriod = 100_000

// wrapperProcesses are those of bubblewrap, which are not the run's.
const wrapperProcesses = 2

// setLimits writes what the groups keep.
func (b *Box) setLimits(l Limits, kind string) error {
	var errs []error
	switch b.h.by[memory] {
	case byV2:
		errs = append(errs, setMemory2(b.members, l.Memory))
	case byV1:
		errs = append(errs, setMemory1(b.v1["memory"], l.Memory))
	}
	if g, own := b.pidsGroup(); g != nil {
		n := int64(l.Processes)
		if n > 0 {
			n += own
			if kind == bubblewrap {
				n += wrapperProcesses
			}
		}
		errs = append(errs, g.set("pids.max", orMax(n, "max")))
	}
	quota := int64(l.CPUs * cpuPeriod)
	if l.CPUs > 0 {
		quota = max(quota, 1000) // the kernel's least
	}
	period := strconv.Itoa(cpuPeriod)
	switch b.h.by[cpus] {
	case byV2:
		errs = append(errs, b.members.set("cpu.max", orMax(quota, "max")+" "+period))
	case byV1:
		g := b.v1["cpu"]
		errs = append(errs, g.set("cpu.cfs_period_us", period), g.set("cpu.cfs_quota_us", orMax(quota, "-1")))
	}
	return errors.Join(errs...)
}

func orMax(n int64, none string) string {
	if n <= 0 {
		return none
	}
	return strconv.FormatInt(n, 10)
}

func setMemory2(g *group, n int64) error {
	err := g.set("memory.max", orMax(n, "max"))
	swap := "max"
	if n > 0 {
		swap = "0"
	}
	if e := g.set("memory.swap.max", swap); e != nil && !errors.Is(e, fs.ErrNotExist) {
		err = errors.Join(err, e)
	}
	return err
}

// setMemory1 writes the limits of memory, and of memory with swap, in the order
// in which the second is never below the first.
func setMemory1(g *group, n int64) error {
	const ram, both = "memory.limit_in_bytes", "memory.memsw.limit_in_bytes"
	v := orMax(n, "-1")
	if g.last(ram) == v {
		return nil
	}
	if !g.has(both) {
		return g.set(ram, v)
	}
	if err := g.write(ram, v); err == nil {
		if err = g.write(both, v); err == nil {
			g.remember(ram, v)
		}
		return err
	}
	g.remember(ram, "")
	if err := g.write(both, v); err != nil {
		return err
	}
	return g.set(ram, v)
}

// pidsGroup is the group that limits processes, and how many tasks in it are
// not the run's: our own thread.
func (b *Box) pidsGroup() (g *group, own int64) {
	switch b.h.by[processes] {
	case byV2:
		return b.members, 0
	case byV1:
		return b.v1["pids"], 1
	}
	return nil, 0
}

// counters are what the groups have counted.
type counters struct {
	oom, forks int64
	cpu        time.Duration
}

// count reads the counters of the limits that are set.
func (b *Box) count() counters {
	var c counters
	if b.limits.Memory > 0 {
		switch b.h.by[memory] {
		case byV2:
			c.oom = b.members.counter("memory.events", "oom_kill")
		case byV1:
			c.oom = b.v1["memory"].counter("memory.oom_control", "oom_kill")
		}
	}
	if g, _ := b.pidsGroup(); g != nil && b.limits.Processes > 0 {
		c.forks = g.counter("pids.events", "max")
	}
	if b.limits.CPUTime > 0 {
		switch b.h.by[cpuTime] {
		case byV2:
			c.cpu = time.Duration(b.members.counter("cpu.stat", "usage_usec")) * time.Microsecond
		case byV1:
			c.cpu = time.Duration(b.v1["cpuacct"].counter("cpuacct.usage", ""))
		}
	}
	return c
}

// Struck names the limits that made the run of the box fail, as far as the
// system tells: memory, processes, cpu_time, file_size. It is asked after the
// run's end and before Free.
func (b *Box) Struck() []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.look()
	struck := append([]string{}, b.struck...)
	if b.cmd == nil || b.cmd.ProcessState == nil {
		return struck
	}
	ws, _ := b.cmd.ProcessState.Sys().(syscall.WaitStatus)
	by := func(sig syscall.Signal) bool { // a shell and bubblewrap tell a signal by an exit status
		return ws.Signaled() && ws.Signal() == sig || ws.Exited() && ws.ExitStatus() == 128+int(sig)
	}
	if b.limits.FileSize > 0 && by(syscall.SIGXFSZ) {
		struck = append(struck, fileSize)
	}
	if b.limits.CPUTime > 0 && b.h.by[cpuTime] == byRlimit && (by(syscall.SIGXCPU) || by(syscall.SIGKILL) && b.spent() >= b.limits.CPUTime) {
		struck = append(struck, cpuTime)
	}
	return struck
}

// spent is the time of the program itself and of what it waited for.
func (b *Box) spent() time.Duration {
	st := b.cmd.ProcessState
	return st.UserTime() + st.SystemTime()
}

// look compares the counters with those at the run's begin, and tells whether
// a limit was struck after which the run is not to go on.
func (b *Box) look() (over bool) {
	now := b.count()
	add := func(name string) {
		for _, s := range b.struck {
			if s == name {
				return
			}
		}
		b.struck = append(b.struck, name)
	}
	if now.oom > b.before.oom {
		add(memory)
		over = true
	}
	if now.forks > b.before.forks {
		add(processes)
	}
	if b.limits.CPUTime > 0 && now.cpu-b.before.cpu >= b.limits.CPUTime {
		add(cpuTime)
		over = true
	}
	return over
}

// killBelowV1 kills in a group and in those below it.
func killBelowV1(g *group) {
	dirs, _ := filepath.Glob(filepath.Join(g.dir, "*", "pids.max"))
	for _, d := range dirs {
		sub := groupAt(filepath.Dir(d))
		_ = killV1(sub)
		sub.close()
	}
	_ = killV1(g)
}
