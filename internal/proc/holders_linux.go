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

// writers are the processes, started at that time or later, that have one of
// the pipes open to be written. This process reads them.
func writers(pipes []uint64, since uint64) []entry {
	names := make([]string, len(pipes))
	for i, n := range pipes {
		names[i] = fmt.Sprintf("pipe:[%d]", n)
	}
	var out []entry
	for _, e := range table() {
		if e.start >= since && !e.zombie && e.pid > 1 && e.pid != os.Getpid() && writes(e.pid, names) {
			out = append(out, e)
		}
	}
	return out
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
