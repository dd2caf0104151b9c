package confine

import (
	"errors"
	"io/fs"
	"slices"
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
	if b.h.by[memory] == byV2 {
		errs = append(errs, setMemory(b.members, l.Memory))
	}
	if b.h.by[processes] == byV2 {
		n := int64(l.Processes)
		if n > 0 && kind == bubblewrap {
			n += wrapperProcesses
		}
		errs = append(errs, b.members.set("pids.max", orMax(n)))
	}
	quota := int64(l.CPUs * cpuPeriod)
	if l.CPUs > 0 {
		quota = max(quota, 1000) // the kernel's least
	}
	if b.h.by[cpus] == byV2 {
		errs = append(errs, b.members.set("cpu.max", orMax(quota)+" "+strconv.Itoa(cpuPeriod)))
	}
	return errors.Join(errs...)
}

func orMax(n int64) string {
	if n <= 0 {
		return "max"
	}
	return strconv.FormatInt(n, 10)
}

func setMemory(g *group, n int64) error {
	err := g.set("memory.max", orMax(n))
	swap := "max"
	if n > 0 {
		swap = "0"
	}
	if e := g.set("memory.swap.max", swap); e != nil && !errors.Is(e, fs.ErrNotExist) {
		err = errors.Join(err, e)
	}
	return err
}

// counters are what the groups have counted.
type counters struct {
	oom, forks int64
	cpu        time.Duration
}

// count reads the counters of the limits that are set.
func (b *Box) count() counters {
	var c counters
	if b.limits.Memory > 0 && b.h.by[memory] == byV2 {
		c.oom = b.members.counter("memory.events", "oom_kill")
	}
	if b.limits.Processes > 0 && b.h.by[processes] == byV2 {
		c.forks = b.members.counter("pids.events", "max")
	}
	if b.limits.CPUTime > 0 && b.h.by[cpuTime] == byV2 {
		c.cpu = time.Duration(b.members.counter("cpu.stat", "usage_usec")) * time.Microsecond
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
		if !slices.Contains(b.struck, name) {
			b.struck = append(b.struck, name)
		}
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
