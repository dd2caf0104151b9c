package proc

import (
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"syscall"
)

// inode names a pipe; 0 is none.
func inode(f *os.File) (n uint64) {
	raw, err := f.SyscallConn()
	if err != nil {
		return 0
	}
	_ = raw.Control(func(fd uintptr) { // closed by now is none
		var st syscall.Stat_t
		if syscall.Fstat(int(fd), &st) == nil {
			n = st.Ino
		}
	})
	return n
}

// writers are our descendants that have one of the pipes open to be written, were
// started after the run and carry no other's mark.
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

// ours tells whether a process is this one or descends from it.
func ours(pid int, parents map[int]int) bool {
	for range len(parents) { // a table that was read while it changed may go in a circle
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
		return false // gone, or somebody else's
	}
	for _, f := range files {
		to, err := os.Readlink(dir + "/fd/" + f.Name())
		if err == nil && slices.Contains(names, to) && opensToWrite(dir+"/fdinfo/"+f.Name()) {
			return true
		}
	}
	return false
}

// opensToWrite reads the octal flags with which a file was opened.
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
