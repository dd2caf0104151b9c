package confine

import (
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// rlimit is a limit that each process has of its own.
type rlimit struct {
	resource int
	name     string
	value    uint64
}

// rlimits are those that bind a run where the groups do not.
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

// apply binds a process. No limit is raised above what we have ourselves.
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

// traceStop waits until a child that asked to be traced stands at its first
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
		_ = unix.PtraceCont(pid, int(sig)) // a signal came before the stop; if it is gone, the next wait says so
	}
}

// signalIn reads si_status, which stands after pid and uid in the union that
// begins at a word's boundary.
func signalIn(info *unix.Siginfo) unix.Signal {
	const word = unsafe.Sizeof(uintptr(0))
	const union = (3*4 + word - 1) / word * word
	return unix.Signal(*(*int32)(unsafe.Add(unsafe.Pointer(info), union+8))) //nolint:gosec // within Siginfo, which is longer
}

// tasksOfUser counts the tasks of our user, among which RLIMIT_NPROC counts.
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
