package proc

import (
	"os"
	"slices"
	"syscall"
	"time"
)

// ClearMarks ends, by SIGKILL at once, what lives of runs that another process
// started and of which nothing but the marks is known. It returns what could
// not be killed, by mark. A look at all processes costs as much for one run as
// for a thousand, so all of them are looked for together.
func ClearMarks(marks []string) map[string][]int {
	if len(marks) == 0 {
		return nil
	}
	c := clearing{marks: map[string]bool{}, known: map[life]string{}}
	for _, m := range marks {
		c.marks[m] = m != ""
	}
	var left map[string][]int
	e := ending{
		alive: func() (pids []int) {
			left = map[string][]int{}
			for l, mark := range c.look() {
				pids, left[mark] = append(pids, l.pid), append(left[mark], l.pid)
			}
			return pids
		},
		signal: func(sig syscall.Signal) {
			for l := range c.look() {
				signalOne(entry{pid: l.pid, start: l.start}, sig)
			}
		},
		over:  true, // mostly nothing is left, and one look shows it
		pause: time.Millisecond,
	}
	if e.end(0) == nil {
		return nil
	}
	for _, pids := range left {
		slices.Sort(pids)
	}
	return left
}

// life is a process, told from a later one that has its pid.
type life struct {
	pid   int
	start uint64
}

// clearing is what is looked for, and what was found of it.
type clearing struct {
	marks map[string]bool
	known map[life]string // mark of all that were ever seen
}

// look returns what lives of the runs, with the mark of each.
func (c *clearing) look() map[life]string {
	all := seen()
	of := map[int]string{}
	for _, e := range all {
		mark := c.known[life{e.pid, e.start}]
		if mark == "" && !e.zombie && e.pid > 1 && e.pid != os.Getpid() {
			mark = markAmong(e.pid, func(m string) bool { return c.marks[m] })
		}
		if mark != "" {
			of[e.pid] = mark
		}
	}
	for grew := len(of) > 0; grew; {
		grew = false
		for _, e := range all {
			if of[e.pid] == "" && of[e.ppid] != "" && e.pid != os.Getpid() {
				of[e.pid], grew = of[e.ppid], true
			}
		}
	}
	alive := map[life]string{}
	for _, e := range all {
		if mark := of[e.pid]; mark != "" {
			c.known[life{e.pid, e.start}] = mark
			if !e.zombie {
				alive[life{e.pid, e.start}] = mark
			}
		}
	}
	return alive
}
