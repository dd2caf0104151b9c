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
	b, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return entry{}, false
	}
	f := strings.Fields(string(b[bytes.LastIndexByte(b, ')')+1:]))
	if len(f) < 20 {
		return entry{}, false
	}
	num := func(i int) int { n, _ := strconv.Atoi(f[i]); return n }
	start, _ := strconv.ParseUint(f[19], 10, 64)
	return entry{
		pid: pid, ppid: num(1), pgid: num(2), sid: num(3), start: start,
		zombie: f[0] == "Z" || f[0] == "X",
	}, true
}

// marked reports whether the environment that the process was started with
// carries the mark.
func marked(pid int, mark string) bool {
	if mark == "" {
		return false
	}
	b, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/environ")
	if err != nil {
		return false
	}
	want := []byte(MarkVar + "=" + mark)
	for v := range bytes.SplitSeq(b, []byte{0}) {
		if bytes.Equal(v, want) {
			return true
		}
	}
	return false
}
