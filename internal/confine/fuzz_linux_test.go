package confine

import (
	"path/filepath"
	"strings"
	"testing"
)

// FuzzTrees: whatever the kernel's tables contain, our control group is below a
// mount, at an absolute path without "..".
func FuzzTrees(f *testing.F) {
	f.Add("35 24 0:30 / /sys/fs/cgroup rw,nosuid - cgroup2 cgroup2 rw\n", "0::/user.slice/x.scope\n")
	f.Add("36 24 0:31 /docker/abc /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu,cpuacct\n", "4:cpu,cpuacct:/docker/abc/x\n0::/\n")
	f.Add("35 24 0:30 /.. /a\\040b rw - cgroup2 cgroup2 rw\n", "0::/../..\n")
	f.Fuzz(func(t *testing.T, mountinfo, cgroup string) {
		tr := parseTree(mountinfo, cgroup)
		if filepath.Clean(tr.own) != tr.own && tr.own != "" {
			t.Fatalf("%q is not clean", tr.own)
		}
		if strings.Contains(tr.own, "/../") || strings.HasSuffix(tr.own, "/..") {
			t.Fatalf("%q leads up", tr.own)
		}
	})
}
