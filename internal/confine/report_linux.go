package confine

import (
	"os"
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

// cureOf says how control groups are had on a machine. Where their controllers
// are those of version 1, which is not used, a director in version 2 has none.
func cureOf(o Options, t tree) string {
	switch {
	case o.Method == byRlimit:
		return "set commands.limits to auto: control groups are used where they can be had"
	case t.older && o.Method != byV2:
		return "boot this machine with control groups of version 2 (systemd.unified_cgroup_hierarchy=1 on the kernel's command line): those of version 1 are not used"
	case t.own != "":
		return "run the director where it may make control groups (as root, in a container with a delegated group, or under systemd with Delegate=yes)"
	}
	return "run the director where there are control groups, mounted at /sys/fs/cgroup"
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
