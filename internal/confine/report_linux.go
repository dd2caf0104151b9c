package confine

import (
	"os"
	"strings"
)

// Report says what was found.
func (h *Host) Report() Report {
	r := Report{Method: h.method, Detail: strings.Join(h.detail, "; "), NoNewPrivs: true, Sandbox: h.sandboxReport()}
	for _, name := range []string{memory, cpus, cpuTime, processes, fileSize, openFiles} {
		r.Limits = append(r.Limits, LimitReport{Name: name, By: h.by[name], Note: h.limitNote(name)})
	}
	return r
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
