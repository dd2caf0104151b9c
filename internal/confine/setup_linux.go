package confine

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// wanted are the controllers that the limits need.
var wanted = []want{{memory, "memory"}, {processes, "pids"}, {cpus, "cpu"}}

type want struct{ limit, controller string }

// directorLeaf is the group into which this process moves if its own group
// must have groups below it: in version 2 a group has either processes or
// controlled groups.
const directorLeaf = "signalbox-director"

// setUp decides what enforces which limit, and creates the group of all
// boxes.
func (h *Host) setUp() error {
	switch h.o.Method {
	case "", "auto", byV2, byRlimit:
	default:
		return fmt.Errorf("confine: method is %q; it must be auto, cgroup2 or rlimit", h.o.Method)
	}
	// This process also collects orphans of its own tests: a process above it would
	// never collect them.
	_ = unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
	t := findTree()
	h.cure = cureOf(h.o, t)
	if h.o.Method == byRlimit {
		h.method = byRlimit
		h.note("asked for")
		h.fillRlimits()
		return nil
	}
	h.useGroups(t)
	defer h.fillRlimits()
	h.method = byRlimit
	if len(h.by) > 0 {
		h.method = byV2
	}
	if m := h.o.Method; m != "" && m != "auto" && m != h.method {
		err := fmt.Errorf("confine: method %s is not available: %s", m, strings.Join(h.detail, "; "))
		err = errors.Join(err, h.removeAll())
		h.unlock()
		return err
	}
	return nil
}

func (h *Host) note(format string, a ...any) { h.detail = append(h.detail, fmt.Sprintf(format, a...)) }

// fillRlimits uses rlimits for what the groups do not enforce. Every group
// counts CPU time.
func (h *Host) fillRlimits() {
	if h.members != "" {
		h.by[cpuTime] = byV2
	}
	for _, l := range []string{memory, cpuTime, fileSize, openFiles} {
		h.by[l] = cmp.Or(h.by[l], byRlimit)
	}
	if h.by[processes] == "" && os.Getuid() != 0 {
		h.by[processes] = byRlimit // does not apply to root
	}
}

// useGroups creates the group of all boxes, which knows the living processes
// of a box even without controllers.
func (h *Host) useGroups(t tree) {
	if t.own == "" {
		h.note("no control groups of version 2")
		return
	}
	if filepath.Base(t.own) == directorLeaf {
		t.own, t.shown = filepath.Dir(t.own), filepath.Dir(t.shown)
	}
	all, err := h.claim(t.own)
	if err != nil {
		hint := ""
		if !t.older {
			hint = " (delegate it: systemd-run --user --scope -p Delegate=yes, or Delegate=yes in the unit)"
		}
		h.note("control group %s: %v%s", t.own, reason(err), hint)
		return
	}
	g := groupAt(all)
	h.members, h.shown = all, filepath.Join(t.shown, h.name)
	h.enable(t.own, g)
	g.close()
	if len(h.by) == 0 {
		h.note("%s knows what lives, but has no controllers", all)
		return
	}
	h.note("%s", all)
}

// enable enables the controllers that limits need below a group.
func (h *Host) enable(own string, all *group) {
	parent := groupAt(own)
	defer parent.close()
	have, _ := parent.read("cgroup.controllers")
	free := false
	for _, w := range wanted {
		if !slices.Contains(strings.Fields(have), w.controller) {
			continue
		}
		if !free {
			if err := makeRoom(parent); err != nil {
				h.note("no controllers: %v", err)
				return
			}
			free = true
		}
		err := parent.write("cgroup.subtree_control", "+"+w.controller)
		if err == nil {
			err = all.write("cgroup.subtree_control", "+"+w.controller)
		}
		if err != nil {
			h.note("controller %s: %v", w.controller, reason(err))
			continue
		}
		h.by[w.limit] = byV2
	}
}

// makeRoom makes sure that a group has no processes: otherwise some
// controllers, once enabled, make the groups below it unable to take
// processes. The root group is an exception: it has no type.
func makeRoom(g *group) error {
	if !g.has("cgroup.type") || len(allIn(g.dir)) == 0 {
		return nil
	}
	return moveAside(g.dir)
}

// moveAside moves this process, and what it or PID 1 of its container
// started, into a leaf. It leaves a group alone that has processes of others.
func moveAside(own string) error {
	ours := allIn(own)
	for _, pid := range ours {
		if pid != 1 && !descends(pid) {
			return fmt.Errorf("process %d is in the same group %s and is not ours", pid, own)
		}
	}
	leaf, err := makeGroup(filepath.Join(own, directorLeaf))
	if err != nil {
		return err
	}
	defer leaf.close()
	for _, pid := range ours {
		if err := leaf.write("cgroup.procs", fmt.Sprint(pid)); err != nil && !errors.Is(err, syscall.ESRCH) {
			return err
		}
	}
	return nil
}

// reason removes the path from an error that is shown beside it.
func reason(err error) error {
	if p, ok := errors.AsType[*os.PathError](err); ok {
		return p.Err
	}
	return err
}

// clear kills what an earlier process left behind, and removes its groups.
func (h *Host) clear(all string) {
	if _, err := os.Lstat(all); err != nil {
		return
	}
	g := groupAt(all)
	defer g.close()
	if left := g.pids(); len(left) > 0 {
		h.o.Log.Warn("Processes of an earlier start are killed", "pids", left, "group", all)
	}
	if err := killGroup(g); err != nil {
		h.o.Log.Error("Processes of an earlier start could not be killed", "pids", g.pids(), "group", all)
		return
	}
	if err := g.remove(); err != nil {
		h.o.Log.Warn("The control groups of an earlier start could not be removed", "error", err)
	}
}

// tree is the mounted hierarchy of control groups of version 2, with our place
// in it.
type tree struct {
	own   string // directory of this process's group; "": not visible
	shown string // the same as named in /proc/self/cgroup
	older bool   // the controllers that limits need are in version 1
}

// findTree reads the mounted hierarchies.
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

// parseTree combines the mounts of control groups with the group of this
// process.
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
		if rel, ok := below(unescape(h[3]), t.shown); ok { // otherwise this mount does not show our group
			t.own = filepath.Join(unescape(h[4]), rel)
			break
		}
	}
	return t
}

// below returns path relative to root, if it is not above root.
func below(root, path string) (string, bool) {
	if root == "/" {
		return path, true
	}
	rel, ok := strings.CutPrefix(path, root)
	return rel, ok && (rel == "" || rel[0] == '/')
}

// unescape resolves the \040 of mountinfo.
func unescape(s string) string {
	return strings.NewReplacer(`\040`, " ", `\011`, "\t", `\012`, "\n", `\134`, `\`).Replace(s)
}
