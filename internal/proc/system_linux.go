package proc

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"
)

// marksReadable reports whether marked works.
const marksReadable = true

// becomeSubreaper makes this process, instead of PID 1, the parent of
// orphaned descendants, so that they stay in its tree. The setting belongs to
// this process and is not inherited.
var becomeSubreaper = sync.OnceFunc(func() {
	_ = unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) // on failure, marks and sessions still find them
})

var bootID = sync.OnceValue(func() string {
	b, _ := os.ReadFile("/proc/sys/kernel/random/boot_id")
	return strings.TrimSpace(string(b))
})

// Identify returns the process that has this PID now. Start is 0 if there is
// none.
func Identify(pid int) Ident {
	e, _ := readStat(pid)
	return Ident{PID: pid, Start: e.start, Boot: bootID()}
}

func table() []entry {
	dir, err := os.Open("/proc")
	if err != nil {
		return nil
	}
	defer dir.Close()
	names, _ := dir.Readdirnames(-1)
	out := make([]entry, 0, len(names))
	for _, n := range names {
		pid, err := strconv.Atoi(n)
		if err != nil {
			continue
		}
		if e, ok := readStat(pid); ok {
			out = append(out, e)
		}
	}
	return out
}

// readStat reads /proc/<pid>/stat. The name in it is in parentheses and may
// contain anything, so the fields are counted from its end.
func readStat(pid int) (entry, bool) {
	var buf [1024]byte
	b := buf[:readSmall("/proc/"+strconv.Itoa(pid)+"/stat", buf[:])]
	rest := b[bytes.LastIndexByte(b, ')')+1:]
	e, i := entry{pid: pid}, 0
	for f := range bytes.FieldsSeq(rest) {
		switch i {
		case 0:
			e.zombie = f[0] == 'Z' || f[0] == 'X'
		case 1:
			e.ppid = number(f)
		case 2:
			e.pgid = number(f)
		case 3:
			e.sid = number(f)
		case 17: // threads: a process is alive while one of them is, even without its first
			e.zombie = e.zombie && number(f) <= 1
		case 19:
			e.start, _ = strconv.ParseUint(string(f), 10, 64)
			return e, true
		}
		i++
	}
	return entry{}, false
}

func number(b []byte) int {
	n, _ := strconv.Atoi(string(b))
	return n
}

// readSmall reads a file of /proc that is shorter than buf, without the cost of
// registering it with the poller: a scan reads hundreds.
func readSmall(path string, buf []byte) int {
	fd, err := unix.Open(path, unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return 0
	}
	defer unix.Close(fd) //nolint:errcheck // nothing was written
	n, err := unix.Read(fd, buf)
	if err != nil {
		return 0
	}
	return n
}

// marked reports whether the process's initial environment has the mark.
func marked(pid int, mark string) bool {
	return mark != "" && markAmong(pid, func(m string) bool { return m == mark }) != ""
}

// markAmong returns the first mark in the process's initial environment that
// is wanted.
func markAmong(pid int, wanted func(mark string) bool) string {
	b, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/environ")
	if err != nil {
		return ""
	}
	for v := range bytes.SplitSeq(b, []byte{0}) {
		if mark, ok := bytes.CutPrefix(v, []byte(MarkVar+"=")); ok && wanted(string(mark)) {
			return string(mark)
		}
	}
	return ""
}

// forks receives functions for the kept thread.
var forks = sync.OnceValue(func() chan<- func() {
	c := make(chan func())
	go keptThread(c)
	return c
})

// keptThread runs on a thread that lives as long as the process.
func keptThread(c <-chan func()) {
	runtime.LockOSThread()
	for f := range c {
		f()
	}
}

// startBound starts a program that gets SIGTERM when this process dies.
func startBound(cmd *exec.Cmd) error {
	cmd.SysProcAttr.Pdeathsig = syscall.SIGTERM
	started := make(chan error)
	forks() <- func() { started <- cmd.Start() }
	return <-started
}

// namelessFile is a file in memory: a program's input never reaches a disk.
func namelessFile() (*os.File, error) {
	fd, err := unix.MemfdCreate("signalbox-stdin", unix.MFD_CLOEXEC|unix.MFD_NOEXEC_SEAL)
	if err == unix.EINVAL { // before Linux 6.3
		fd, err = unix.MemfdCreate("signalbox-stdin", unix.MFD_CLOEXEC)
	}
	if err != nil {
		return tempFile()
	}
	return os.NewFile(uintptr(fd), "signalbox-stdin"), nil
}

// pipeOut is a pipe whose writing end is for the program only, and so is not
// registered with our poller.
func pipeOut() (r, w *os.File, err error) {
	var fd [2]int
	if err := unix.Pipe2(fd[:], unix.O_CLOEXEC); err != nil {
		return nil, nil, os.NewSyscallError("pipe2", err)
	}
	if err := unix.SetNonblock(fd[0], true); err != nil {
		unix.Close(fd[0]) //nolint:errcheck // nothing was written
		unix.Close(fd[1]) //nolint:errcheck // nothing was written
		return nil, nil, os.NewSyscallError("setnonblock", err)
	}
	return os.NewFile(uintptr(fd[0]), "output"), os.NewFile(uintptr(fd[1]), "output"), nil
}

// inode identifies a pipe; 0 is none.
func inode(f *os.File) (n uint64) {
	raw, err := f.SyscallConn()
	if err != nil {
		return 0
	}
	_ = raw.Control(func(fd uintptr) { // a closed file has none
		var st syscall.Stat_t
		if syscall.Fstat(int(fd), &st) == nil {
			n = st.Ino
		}
	})
	return n
}

// writers are our descendants that have one of the pipes open for writing, were
// started after the run and have no other run's mark.
func writers(pipes []uint64, run Ident) []entry {
	names := make([]string, len(pipes))
	for i, n := range pipes {
		names[i] = fmt.Sprintf("pipe:[%d]", n)
	}
	parents, out := map[int]int{}, []entry(nil)
	all := seen()
	for _, e := range all {
		parents[e.pid] = e.ppid
	}
	others := func(mark string) bool { return mark != run.Mark }
	for _, e := range all {
		if e.start >= run.Start && !e.zombie && ours(e.ppid, parents) && markAmong(e.pid, others) == "" && writes(e.pid, names) {
			out = append(out, e)
		}
	}
	return out
}

// ours reports whether a process is this one or descends from it.
func ours(pid int, parents map[int]int) bool {
	for range len(parents) { // a table that was read while it changed may have a cycle
		if pid == os.Getpid() {
			return true
		}
		pid = parents[pid]
	}
	return false
}

func writes(pid int, names []string) bool {
	dir := "/proc/" + strconv.Itoa(pid)
	files, err := os.ReadDir(dir + "/fd")
	if err != nil {
		return false // gone, or a descendant of another process
	}
	for _, f := range files {
		to, err := os.Readlink(dir + "/fd/" + f.Name())
		if err == nil && slices.Contains(names, to) && opensToWrite(dir+"/fdinfo/"+f.Name()) {
			return true
		}
	}
	return false
}

// opensToWrite reads the octal flags of an open file.
func opensToWrite(path string) bool {
	text, err := os.ReadFile(path)
	if err != nil {
		return false
	}
	for line := range strings.Lines(string(text)) {
		if flags, ok := strings.CutPrefix(line, "flags:"); ok {
			n, err := strconv.ParseUint(strings.TrimSpace(flags), 8, 64)
			return err == nil && n&syscall.O_ACCMODE != syscall.O_RDONLY
		}
	}
	return false
}

// carrier is the limit that carries a stamp, as the difference between the soft
// and the hard limit: the bytes of POSIX message queues, which hardly any
// program uses, and none down to the last kilobytes.
const carrier = unix.RLIMIT_MSGQUEUE

// putStamp sets the stamp on this process, for programs it starts until
// restore.
func putStamp(s stamp) (restore func()) {
	var was unix.Rlimit
	if s == 0 || unix.Getrlimit(carrier, &was) != nil || was.Max < 2*stamps {
		return func() {}
	}
	if err := unix.Setrlimit(carrier, &unix.Rlimit{Cur: was.Max - uint64(s), Max: was.Max}); err != nil {
		return func() {}
	}
	return func() { _ = unix.Setrlimit(carrier, &was) } // raising it up to the hard limit is always allowed
}

// stampOf returns a process's stamp; 0: none, or there is no such process.
func stampOf(pid int) stamp {
	var has unix.Rlimit
	if unix.Prlimit(pid, carrier, nil, &has) != nil || has.Cur >= has.Max || has.Max-has.Cur >= stamps {
		return 0
	}
	return stamp(has.Max - has.Cur)
}

// KeepPrivate prevents other processes of the same user from tracing this one and
// from reading its memory, its initial environment and its open files. It also
// prevents core dumps. Programs that it starts are not protected. It does not stop
// root or processes with CAP_SYS_PTRACE. macOS has no equivalent.
func KeepPrivate() {
	_ = unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0) // no kernel refuses it
}

// wakeable returns the same terminal as a file whose reads end when it is
// closed, and whose writes support deadlines. Opening it had made it
// blocking.
func wakeable(f *os.File) (*os.File, error) {
	fd, err := unix.FcntlInt(f.Fd(), unix.F_DUPFD_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	if err := unix.SetNonblock(fd, true); err != nil {
		unix.Close(fd) //nolint:errcheck // the earlier error is more useful
		return nil, err
	}
	f.Close()
	return os.NewFile(uintptr(fd), f.Name()), nil
}
