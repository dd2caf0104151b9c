package confine

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// cpuPeriod is the period of a CPU quota, in microseconds.
const cpuPeriod = 100_000

// wrapperProcesses are bubblewrap's own processes.
const wrapperProcesses = 2

// setLimits writes the limits that the groups enforce.
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
		quota = max(quota, 1000) // the kernel's minimum
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

// counters are the counters of the groups.
type counters struct {
	oom, forks int64
	cpu        time.Duration
}

// count reads the counters for the limits that are set.
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

// Struck names the limits that made the run fail, as far as the system
// reports them: memory, processes, cpu_time, file_size. Call it after the
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
	by := func(sig syscall.Signal) bool { // a shell and bubblewrap report a signal as an exit status
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

// spent is the CPU time of the program itself and of the children that it
// waited for.
func (b *Box) spent() time.Duration {
	st := b.cmd.ProcessState
	return st.UserTime() + st.SystemTime()
}

// look compares the counters with those at the beginning of the run, and
// reports whether a limit was reached after which the run must end.
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

// rlimit is a limit of each single process.
type rlimit struct {
	resource int
	name     string
	value    uint64
}

// rlimits are the limits that the groups do not enforce.
func (h *Host) rlimits(l Limits) []rlimit {
	var rs []rlimit
	add := func(resource int, name string, value int64) {
		if value > 0 {
			rs = append(rs, rlimit{resource, name, uint64(value)})
		}
	}
	add(unix.RLIMIT_FSIZE, "file_size", l.FileSize)
	add(unix.RLIMIT_NOFILE, "open_files", int64(l.OpenFiles))
	if h.by[memory] == byRlimit {
		add(unix.RLIMIT_AS, memory, l.Memory)
	}
	if h.by[cpuTime] == byRlimit {
		add(unix.RLIMIT_CPU, cpuTime, int64((l.CPUTime+time.Second-1)/time.Second))
	}
	if h.by[processes] == byRlimit && l.Processes > 0 {
		add(unix.RLIMIT_NPROC, processes, int64(l.Processes+tasksOfUser()))
	}
	return rs
}

// apply limits a process. No limit is raised above this process's own.
func (r rlimit) apply(pid int) error {
	var old unix.Rlimit
	if err := unix.Prlimit(pid, r.resource, nil, &old); err != nil {
		return fmt.Errorf("limit %s: %w", r.name, err)
	}
	v := unix.Rlimit{Cur: min(r.value, old.Max), Max: min(r.value, old.Max)}
	if r.resource == unix.RLIMIT_CPU {
		v.Max = min(r.value+1, old.Max) // SIGXCPU, and SIGKILL a second later
	}
	if err := unix.Prlimit(pid, r.resource, &v, nil); err != nil {
		return fmt.Errorf("limit %s to %d: %w", r.name, r.value, err)
	}
	return nil
}

// traceStop waits until a child that asked to be traced stops at its first
// instruction. It leaves a child that died meanwhile to exec.Cmd.
func traceStop(pid int) error {
	for {
		var info unix.Siginfo
		err := unix.Waitid(unix.P_PID, pid, &info, unix.WSTOPPED|unix.WEXITED|unix.WNOWAIT|unix.WALL, nil)
		if errors.Is(err, unix.EINTR) {
			continue
		}
		if err != nil {
			return fmt.Errorf("wait for the start of process %d: %w", pid, err)
		}
		const trapped = 4 // CLD_TRAPPED
		if info.Code != trapped {
			return nil
		}
		sig := signalIn(&info)
		if sig == unix.SIGTRAP {
			return nil
		}
		_ = unix.PtraceCont(pid, int(sig)) // a signal came before the stop; if the child is gone, the next wait fails
	}
}

// signalIn reads si_status, which follows pid and uid in a union that is
// aligned to a word.
func signalIn(info *unix.Siginfo) unix.Signal {
	const word = unsafe.Sizeof(uintptr(0))
	const union = (3*4 + word - 1) / word * word
	return unix.Signal(*(*int32)(unsafe.Add(unsafe.Pointer(info), union+8))) //nolint:gosec // within Siginfo, which is longer
}

// tasksOfUser counts the tasks of our user, to which RLIMIT_NPROC applies.
func tasksOfUser() int {
	uid, n := strconv.Itoa(os.Getuid()), 0
	entries, _ := os.ReadDir("/proc")
	for _, e := range entries {
		if _, err := strconv.Atoi(e.Name()); err != nil {
			continue
		}
		b, _ := os.ReadFile("/proc/" + e.Name() + "/status")
		var who, threads string
		for line := range strings.Lines(string(b)) {
			switch f := strings.Fields(line); {
			case len(f) > 1 && f[0] == "Uid:":
				who = f[1]
			case len(f) > 1 && f[0] == "Threads:":
				threads = f[1]
			}
		}
		if who == uid {
			k, _ := strconv.Atoi(threads)
			n += k
		}
	}
	return n
}
