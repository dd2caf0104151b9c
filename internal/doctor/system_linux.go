package doctor

import (
	"bytes"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// groupOf reads the limits of this process's control group (version 2) that are set.
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

// networks are the network file systems, by their statfs type (linux/magic.h).
var networks = map[uint32]string{
	0x6969: "nfs", 0xff534d42: "cifs", 0xfe534d42: "smb2", 0x517b: "smb", 0x564c: "ncp", 0x5346414f: "afs", 0x6b414653: "afs",
	0x00c36400: "ceph", 0x01021997: "9p", 0x73757245: "coda", 0x0bd00bd0: "lustre", 0x7461636f: "ocfs2", 0x01161970: "gfs2", 0x47504653: "gpfs",
}

// network is the name of the file system if it is on another machine; "" otherwise.
func network(s *unix.Statfs_t) string { return networks[uint32(s.Type)] }
