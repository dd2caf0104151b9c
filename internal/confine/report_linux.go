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

// cureOf says how control groups are had on a machine. One that has those of
// version 1 alone is not told to delegate: systemd does so in version 2 only.
func cureOf(o Options, trees []tree) string {
	has := func(version int) bool {
		return slices.ContainsFunc(trees, func(t tree) bool { return t.version == version })
	}
	switch {
	case o.Method == byRlimit:
		return "set commands.limits to auto: control groups are used where they can be had"
	case has(2) && !o.noUnified && o.Method != byV1:
		return "run the director where it may make control groups (as root, in a container with a delegated group, or under systemd with Delegate=yes)"
	case has(1):
		return "run the director where it may make control groups of version 1 (as root, or in a container that may write pids, memory, cpu and cpuacct below /sys/fs/cgroup)"
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
