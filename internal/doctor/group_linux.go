package doctor

import (
	"bytes"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// groupOf reads the limits of this process's control group (version 2), those
// that are set.
func groupOf() []bound {
	data, err := os.ReadFile("/proc/self/cgroup")
	if err != nil {
		return nil
	}
	for line := range strings.Lines(string(data)) {
		if path, ok := strings.CutPrefix(strings.TrimSpace(line), "0::"); ok {
			return boundsIn(filepath.Join("/sys/fs/cgroup", filepath.Clean("/"+path)))
		}
	}
	return nil
}

func boundsIn(dir string) []bound {
	var out []bound
	for _, b := range []bound{{name: "memory.max", unit: "bytes"}, {name: "pids.max", unit: "processes"}} {
		most, limited := number(dir, b.name)
		used, known := number(dir, strings.TrimSuffix(b.name, "max")+"current")
		if limited && known {
			b.used, b.most = used, most
			out = append(out, b)
		}
	}
	return out
}

// number reads a file of a control group; "max" is no number.
func number(dir, file string) (uint64, bool) {
	data, err := os.ReadFile(filepath.Join(dir, file))
	if err != nil {
		return 0, false
	}
	n, err := strconv.ParseUint(string(bytes.TrimSpace(data)), 10, 64)
	return n, err == nil
}
