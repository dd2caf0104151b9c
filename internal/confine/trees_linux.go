package confine

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// tree is the mounted hierarchy of control groups, that of version 2, with our
// place in it.
type tree struct {
	own   string // the directory of the group that this process is in; "" there is none to be seen
	shown string // the same as /proc/self/cgroup names it
	older bool   // the controllers that limits need are those of version 1
}

// findTree reads which hierarchies there are.
func findTree() tree {
	mounts, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return tree{}
	}
	groups, err := os.ReadFile("/proc/self/cgroup")
	if err != nil {
		return tree{}
	}
	return parseTree(string(mounts), string(groups))
}

// parseTree joins the mounts of control groups with the group we are in.
func parseTree(mountinfo, cgroup string) (t tree) {
	for line := range strings.Lines(cgroup) {
		f := strings.SplitN(strings.TrimSpace(line), ":", 3)
		if len(f) != 3 {
			continue
		}
		if f[0] == "0" {
			t.shown = f[2]
			continue
		}
		for _, w := range wanted {
			t.older = t.older || slices.Contains(strings.Split(f[1], ","), w.controller)
		}
	}
	for line := range strings.Lines(mountinfo) {
		head, tail, _ := strings.Cut(line, " - ")
		h, kind := strings.Fields(head), strings.Fields(tail)
		if len(h) < 5 || len(kind) < 3 || kind[0] != "cgroup2" || t.shown == "" {
			continue
		}
		if rel, ok := below(unescape(h[3]), t.shown); ok { // else our group is not to be seen through this mount
			t.own = filepath.Join(unescape(h[4]), rel)
			break
		}
	}
	return t
}

// below returns path relative to root, if it is not above it.
func below(root, path string) (string, bool) {
	if root == "/" {
		return path, true
	}
	rel, ok := strings.CutPrefix(path, root)
	return rel, ok && (rel == "" || rel[0] == '/')
}

// unescape undoes the \040 of mountinfo.
func unescape(s string) string {
	return strings.NewReplacer(`\040`, " ", `\011`, "\t", `\012`, "\n", `\134`, `\`).Replace(s)
}
