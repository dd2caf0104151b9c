package confine

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
)

// wanted are the controllers of control groups that limits need.
var wanted = []want{{memory, "memory"}, {processes, "pids"}, {cpus, "cpu"}}

type want struct{ limit, controller string }

// directorLeaf is where this process moves to when its own group has to have
// groups below it: in version 2 a group has either processes or controlled
// groups.
const directorLeaf = "signalbox-director"

// setUp decides who keeps which limit, and makes the groups of all boxes.
func (h *Host) setUp() error {
	switch h.o.Method {
	case "", "auto", byV2, byV1, byRlimit:
	default:
		return fmt.Errorf("confine: method is %q; it must be auto, cgroup2, cgroup1 or rlimit", h.o.Method)
	}
	trees := findTrees()
	h.cure = cureOf(h.o, trees)
	if h.o.Method == byRlimit {
		h.method = byRlimit
		h.note("asked for")
		h.fillRlimits()
		return nil
	}
	h.useUnified(trees)
	if h.count(byV2) == 0 || h.o.Method == byV1 {
		h.useV1(trees)
	}
	defer h.fillRlimits()
	switch {
	case h.count(byV2) > 0:
		h.method = byV2
	case h.count(byV1) > 0:
		h.method = byV1
	default:
		h.method = byRlimit
	}
	if m := h.o.Method; m != "" && m != "auto" && m != h.method {
		err := fmt.Errorf("confine: method %s cannot be had: %s", m, strings.Join(h.detail, "; "))
		err = errors.Join(err, h.removeAll())
		h.unlock()
		return err
	}
	return nil
}

func (h *Host) note(format string, a ...any) { h.detail = append(h.detail, fmt.Sprintf(format, a...)) }

func (h *Host) count(by string) (n int) {
	for _, b := range h.by {
		if b == by {
			n++
		}
	}
	return n
}

// fillRlimits gives to each process what no group keeps. The time is counted by
// every group of version 2.
func (h *Host) fillRlimits() {
	if h.unified {
		h.by[cpuTime] = byV2
	}
	for _, l := range []string{memory, cpuTime, fileSize, openFiles} {
		if h.by[l] == "" {
			h.by[l] = byRlimit
		}
	}
	if h.by[processes] == "" && os.Getuid() != 0 {
		h.by[processes] = byRlimit // root is not bound by it
	}
}

// useUnified makes the group of all boxes in the hierarchy of version 2, which
// knows what lives in a box also where it has no controllers.
func (h *Host) useUnified(trees []tree) {
	i := slices.IndexFunc(trees, func(t tree) bool { return t.version == 2 })
	if i < 0 || h.o.noUnified {
		h.note("no control groups of version 2")
		return
	}
	t := trees[i]
	if filepath.Base(t.own) == directorLeaf {
		t.own, t.shown = filepath.Dir(t.own), filepath.Dir(t.shown)
	}
	all, err := h.claim(t.own, true, trees)
	if err != nil {
		hint := ""
		if !controlledByV1(trees) {
			hint = " (delegate it: systemd-run --user --scope -p Delegate=yes, or Delegate=yes in the unit)"
		}
		h.note("control group %s: %v%s", t.own, reason(err), hint)
		return
	}
	g := groupAt(all)
	h.members, h.unified, h.shown = all, true, filepath.Join(t.shown, h.name)
	if h.o.Method == byV1 {
		h.note("%s knows what lives", all)
		g.close()
		return
	}
	h.enable(t.own, g)
	g.close()
	if h.count(byV2) == 0 {
		h.note("%s knows what lives, but has no controllers", all)
		return
	}
	h.note("%s", all)
}

// enable has the controllers that limits need count below a group.
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

// makeRoom sees that no process is in a group, lest some controllers, once
// enabled, make the groups below it such as take no processes. The root of all
// is excepted: it has no type.
func makeRoom(g *group) error {
	if !g.has("cgroup.type") || len(allIn(g.dir)) == 0 {
		return nil
	}
	return moveAside(g.dir)
}

// moveAside moves us, and what we or pid 1 of our container started, into a
// leaf. It does not touch a group in which anybody else lives.
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

// useV1 makes the groups of all boxes in the hierarchies of version 1.
func (h *Host) useV1(trees []tree) {
	if h.members == "" {
		i := slices.IndexFunc(trees, func(t tree) bool { return slices.Contains(t.controllers, "pids") })
		if i >= 0 {
			h.members, _ = h.claim(trees[i].own, false, trees) // where it cannot, its note comes below
		}
	}
	use := func(limit, controller string) {
		i := slices.IndexFunc(trees, func(t tree) bool { return slices.Contains(t.controllers, controller) })
		if i < 0 {
			return
		}
		all := filepath.Join(trees[i].own, h.name)
		if !slices.Contains(h.dirs(), all) {
			h.clear(all, false) // the name is ours
		}
		g, err := makeGroup(all)
		if err != nil {
			h.note("controller %s: %v", controller, reason(err))
			return
		}
		g.close()
		h.v1[controller], h.by[limit] = all, byV1
	}
	for _, w := range wanted {
		use(w.limit, w.controller)
	}
	if !controlledByV1(trees) {
		h.note("no control groups of version 1")
	}
	if !h.unified {
		use(cpuTime, "cpuacct")
	}
	if d := h.v1["memory"]; d != "" {
		h.note("limits by version 1, memory in %s", d)
	}
}

// reason is an error without the path that stands beside it.
func reason(err error) error {
	var p *os.PathError
	if errors.As(err, &p) {
		return p.Err
	}
	return err
}

// clear kills what an earlier process left, and removes its groups.
func (h *Host) clear(all string, unified bool) {
	if _, err := os.Lstat(all); err != nil {
		return
	}
	g := groupAt(all)
	defer g.close()
	if left := g.pids(); len(left) > 0 {
		h.o.Log.Warn("Processes of an earlier start are killed", "pids", left, "group", all)
	}
	if err := killGroup(g, unified, emptyWait); err != nil {
		h.o.Log.Error("Processes of an earlier start could not be killed", "pids", g.pids(), "group", all)
		return
	}
	if err := g.remove(); err != nil {
		h.o.Log.Warn("The control groups of an earlier start could not be removed", "error", err)
	}
}
