package confine

import (
	"bufio"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// tree is a mounted hierarchy of control groups, with our place in it.
type tree struct {
	version     int
	controllers []string // of version 1; of version 2 they stand in its files
	own         string   // the directory of the group that this process is in
	shown       string   // the same as /proc/self/cgroup names it
}

// findTrees reads which hierarchies there are.
func findTrees() []tree {
	mounts, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return nil
	}
	groups, err := os.ReadFile("/proc/self/cgroup")
	if err != nil {
		return nil
	}
	return parseTrees(string(mounts), string(groups))
}

// parseTrees joins the mounts of control groups with the groups we are in.
func parseTrees(mountinfo, cgroup string) []tree {
	byControllers := map[string]string{} // "cpu,cpuacct" → path; "" is version 2
	for line := range strings.Lines(cgroup) {
		f := strings.SplitN(strings.TrimSpace(line), ":", 3)
		if len(f) == 3 {
			byControllers[f[1]] = f[2]
		}
	}
	var trees []tree
	sc := bufio.NewScanner(strings.NewReader(mountinfo))
	for sc.Scan() {
		head, tail, ok := strings.Cut(sc.Text(), " - ")
		h, t := strings.Fields(head), strings.Fields(tail)
		if !ok || len(h) < 5 || len(t) < 3 {
			continue
		}
		root, mount := unescape(h[3]), unescape(h[4])
		for names, path := range byControllers {
			if !mountHas(t[0], t[2], names) {
				continue
			}
			rel, ok := below(root, path)
			if !ok {
				continue // our group is not to be seen through this mount
			}
			tr := tree{version: 1, own: filepath.Join(mount, rel), shown: path}
			if names == "" {
				tr.version = 2
			} else {
				tr.controllers = strings.Split(names, ",")
			}
			trees = append(trees, tr)
		}
	}
	return trees
}

// mountHas tells whether a mount is the hierarchy of these controllers.
func mountHas(fstype, options, names string) bool {
	if names == "" {
		return fstype == "cgroup2"
	}
	if fstype != "cgroup" || strings.HasPrefix(names, "name=") {
		return false
	}
	have := strings.Split(options, ",")
	for n := range strings.SplitSeq(names, ",") {
		if !slices.Contains(have, n) {
			return false
		}
	}
	return true
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
