package proc

import (
	"os"
	"os/exec"
	"strconv"
	"sync"

	"golang.org/x/sys/unix"
)

// zombieState is SZOMB of <sys/proc.h>.
const zombieState = 5

// marksReadable reports whether marked works.
const marksReadable = false

// becomeSubreaper does nothing: macOS hands every orphan to launchd.
func becomeSubreaper() {}

var bootID = sync.OnceValue(func() string {
	tv, err := unix.SysctlTimeval("kern.boottime")
	if err != nil {
		return ""
	}
	return strconv.FormatInt(tv.Sec, 10)
})

// Identify returns the process that has this PID now. Start is 0 if there is
// none.
func Identify(pid int) Ident {
	id := Ident{PID: pid, Boot: bootID()}
	if k, err := unix.SysctlKinfoProc("kern.proc.pid", pid); err == nil {
		id.Start = startOf(k)
	}
	return id
}

func table() []entry {
	procs, err := unix.SysctlKinfoProcSlice("kern.proc.all")
	if err != nil {
		return nil
	}
	out := make([]entry, 0, len(procs))
	for i := range procs {
		k := &procs[i]
		pid := int(k.Proc.P_pid)
		sid, _ := unix.Getsid(pid)
		out = append(out, entry{
			pid: pid, ppid: int(k.Eproc.Ppid), pgid: int(k.Eproc.Pgid), sid: sid,
			start: startOf(k), zombie: k.Proc.P_stat == zombieState,
		})
	}
	return out
}

// startOf is the start time in microseconds since 1970.
func startOf(k *unix.KinfoProc) uint64 {
	return uint64(k.Proc.P_starttime.Sec)*1e6 + uint64(k.Proc.P_starttime.Usec)
}

// marked always returns false: macOS does not show another process's
// environment.
func marked(int, string) bool { return false }

// markAmong does not work on macOS either.
func markAmong(int, func(string) bool) string { return "" }

// startBound starts a program: macOS has no signal for a parent's death.
func startBound(cmd *exec.Cmd) error { return cmd.Start() }

func namelessFile() (*os.File, error) { return tempFile() }

func pipeOut() (r, w *os.File, err error) { return os.Pipe() }

// macOS does not report who has a file open.
func inode(*os.File) uint64 { return 0 }

func writers([]uint64, Ident) []entry { return nil }

func putStamp(stamp) (restore func()) { return func() {} }

func stampOf(int) stamp { return 0 }

// KeepPrivate exists only on Linux.
func KeepPrivate() {}

// wakeable returns the terminal unchanged: kqueue does not support terminals
// on every release of macOS. A read ends when no program has the terminal
// open.
func wakeable(f *os.File) (*os.File, error) { return f, nil }
