package confine

import (
	"os"
	"slices"
	"strings"
)

// Report says what was found.
func (h *Host) Report() Report {
	r := Report{Method: h.method, Detail: strings.Join(h.detail, "; "), NoNewPrivs: true, Tracked: h.members != "", Cure: h.cure, Sandbox: h.sandboxReport()}
	for _, name := range []string{memory, cpus, cpuTime, processes, fileSize, openFiles} {
		r.Limits = append(r.Limits, LimitReport{Name: name, By: h.by[name], Note: h.limitNote(name)})
	}
	return r
}

// cureOf says how control groups are had on a machine. Where version 1 has the
// controllers nobody is told to delegate: systemd does so in version 2 only.
func cureOf(o Options, trees []tree) string {
	unified := slices.ContainsFunc(trees, func(t tree) bool { return t.version == 2 })
	switch {
	case o.Method == byRlimit:
		return "set commands.limits to auto: control groups are used where they can be had"
	case controlledByV1(trees) && o.Method != byV2:
		return "run the director where it may make control groups of version 1 (as root, or in a container that may write pids, memory, cpu and cpuacct below /sys/fs/cgroup)"
	case unified && !o.noUnified && o.Method != byV1:
		return "run the director where it may make control groups (as root, in a container with a delegated group, or under systemd with Delegate=yes)"
	}
	return "run the director where there are control groups, mounted at /sys/fs/cgroup"
}

// controlledByV1 reports whether limits are a matter of version 1 here: then
// version 2, where it is mounted besides, has none of these controllers.
func controlledByV1(trees []tree) bool {
	return slices.ContainsFunc(trees, func(t tree) bool {
		return t.version == 1 && slices.ContainsFunc(wanted, func(w want) bool { return slices.Contains(t.controllers, w.controller) })
	})
}

// limitNote says what a limit does not do.
func (h *Host) limitNote(name string) string {
	by := h.by[name]
	switch {
	case name == cpus && by == "":
		return "needs control groups"
	case name == processes && by == "" && os.Getuid() == 0:
		return "needs control groups: the limit of a user does not bind root"
	case name == processes && by == byRlimit:
		return "counts all processes of the user: as many more as there are at the start"
	case name == memory && by == byRlimit:
		return "address space of each process"
	case name == cpuTime && by == byRlimit:
		return "of each process, in whole seconds"
	case by == byRlimit && !h.trace:
		return "set just after the start: ptrace is refused"
	}
	return ""
}
