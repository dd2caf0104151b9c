package proc

import (
	"bytes"
	"os"
	"strconv"
	"strings"
	"sync"

	"golang.org/x/sys/unix"
)

// marksReadable tells whether marked can know.
const marksReadable = true

// becomeSubreaper has orphaned descendants handed to this process instead of
// pid 1, so that they stay in its tree. The setting is the process's own and
// is not inherited.
var becomeSubreaper = sync.OnceFunc(func() {
	_ = unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) // without it marks and sessions still find them
})

var bootID = sync.OnceValue(func() string {
	b, _ := os.ReadFile("/proc/sys/kernel/random/boot_id")
	return strings.TrimSpace(string(b))
})

// Identify reads who has this pid now. Start is 0 when nobody has.
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
// hold anything, so the fields are counted from its end.
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
		case 17: // threads: a process lives while one of them does, also without its first
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

// readSmall reads a file of /proc that is shorter than buf, without what a file
// costs that may have to be waited for: a look reads hundreds.
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

// marked reports whether the environment that the process was started with
// carries the mark.
func marked(pid int, mark string) bool {
	return mark != "" && markAmong(pid, func(m string) bool { return m == mark }) != ""
}

// markAmong returns the first mark in the environment that the process was
// started with which is one of those that are looked for.
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
