package e2e_test

import (
	"cmp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/api"
	"github.com/signalbox-ai/signalbox/client"
)

// The crash test's checks of the director's answers, its journal, and the
// agents' own logs.

// wantAllAcknowledged waits until all acknowledged tasks have ended, makes
// all checks, and returns the tasks.
func (c *crash) wantAllAcknowledged() map[string]api.Task {
	c.t.Helper()
	ended := map[string]api.Task{}
	for _, s := range c.tasks {
		ended[s.id] = c.end(c.c, s.id)
	}
	c.quiet()
	c.t.Logf("%d tasks acknowledged, %d events", len(c.tasks), len(c.j.all()))
	c.wantOneEndEach(len(c.tasks), ended)
	c.wantGrowingFences(c.wantNoOverlap(), ended)
	c.wantOrder()
	c.wantQuietLog()
	return ended
}

// wantOneEndEach: every acknowledged task has ended exactly once, and there
// are no other tasks.
func (c *crash) wantOneEndEach(tasks int, ended map[string]api.Task) {
	c.t.Helper()
	if len(ended) != tasks {
		c.t.Errorf("%d ids were acknowledged for %d submits", len(ended), tasks)
	}
	submits, last := map[string]int{}, map[string]int{}
	for _, e := range c.j.all() {
		switch {
		case e.QueueID == "":
		case e.Kind == "submit":
			submits[e.QueueID]++
		case signalbox.State(e.State).Terminal():
			last[e.QueueID]++
		}
	}
	states := map[string]int{}
	for id, task := range ended {
		states[task.State+": "+task.Reason]++
		if submits[id] != 1 || last[id] != 1 {
			c.t.Errorf("%s: %d submits, %d ends in the journal: %s", id, submits[id], last[id], kinds(c.j.all(), id))
		}
		if task.Message == "" {
			c.t.Errorf("%s ended as %s without a message", id, task.State)
		}
	}
	c.t.Logf("ended as %v", states)
	if len(submits) != tasks {
		c.t.Errorf("the journal has %d submitted tasks, %d were acknowledged", len(submits), tasks)
	}
	listed := map[string]int{}
	for task, err := range c.c.AllHistory(c.ctx(), client.HistoryOptions{Limit: 77}) {
		if err != nil {
			c.t.Fatal(err)
		}
		listed[task.QueueID]++
	}
	for id := range ended {
		if listed[id] != 1 {
			c.t.Errorf("%s is in the history %d times", id, listed[id])
		}
	}
	if queue, err := c.c.Queue(c.ctx(), client.QueueOptions{}); err != nil || queue.Depth != 0 || queue.DispatchedCount != 0 {
		c.t.Errorf("the queue is not empty: %+v, %v", queue, err)
	}
}

// wantNoOverlap: in each agent's own log no two executions overlap. It returns
// the executions by task.
func (c *crash) wantNoOverlap() map[string][]execLine {
	c.t.Helper()
	runs := map[string][]execLine{}
	for _, r := range c.agents {
		lines := executions(c.t, c.execLogOf(r))
		for _, fault := range overlaps(lines, r.died) {
			c.t.Errorf("%s: %s", r.name, fault)
		}
		for _, l := range lines {
			if l.Event == "start" {
				runs[l.QueueID] = append(runs[l.QueueID], l)
			}
		}
	}
	return runs
}

// deaths is when processes died, by PID. There can be several, because PIDs are
// reused.
type deaths map[int][]time.Time

func (d deaths) add(pid int) { d[pid] = append(d[pid], time.Now()) }

// between reports whether a process with that PID died in between.
func (d deaths) between(pid int, from, to time.Time) bool {
	return slices.ContainsFunc(d[pid], func(at time.Time) bool { return !at.Before(from) && !at.After(to) })
}

// overlaps finds executions that began in a slot before the previous one had
// ended or its process was dead.
func overlaps(lines []execLine, died deaths) []string {
	var faults []string
	open := map[int]execLine{} // slot → running execution
	for _, l := range lines {
		before, busy := open[l.Slot]
		switch l.Event {
		case "start":
			if busy && !died.between(before.PID, before.At, l.At) {
				faults = append(faults, l.QueueID+" began while "+before.QueueID+" was under way")
			}
			open[l.Slot] = l
		case "end":
			if !busy || before.TaskID != l.TaskID {
				faults = append(faults, l.QueueID+" ended, which was not under way")
			}
			delete(open, l.Slot)
		}
	}
	return faults
}

// wantGrowingFences: each further execution of a task had a higher fence, and
// was requested; a completed task was executed.
func (c *crash) wantGrowingFences(runs map[string][]execLine, ended map[string]api.Task) {
	c.t.Helper()
	again := 0
	for _, s := range c.tasks {
		lines := runs[s.id]
		slices.SortFunc(lines, func(a, b execLine) int { return a.At.Compare(b.At) })
		for i := 1; i < len(lines); i++ {
			if lines[i].Fence <= lines[i-1].Fence {
				c.t.Errorf("%s was executed with fence %d after %d", s.id, lines[i].Fence, lines[i-1].Fence)
			}
		}
		if len(lines) > 1 {
			again++
		}
		if len(lines) > 1 && s.onLost == "fail" && !c.maybeBegun(s.id, lines) {
			c.t.Errorf("%s was executed %d times though it fails when it is lost: %+v\n%s", s.id, len(lines), lines, whole(c.j.all(), s.id))
		}
		task := ended[s.id]
		if task.State == "completed" && (len(lines) == 0 || task.Fence != lines[len(lines)-1].Fence) {
			c.t.Errorf("%s completed under fence %d, executed: %+v", s.id, task.Fence, lines)
		}
		if s.onLost == "requeue" && task.State != "completed" && !s.cancel {
			c.t.Errorf("%s should be requeued when lost, but ended as %s (%s): %s", s.id, task.State, task.Reason, task.Message)
		}
	}
	c.t.Logf("%d tasks were executed more than once", again)
}

// maybeBegun reports whether agents may be silent for longer than the slot
// lease, and the director did not hear of every run but the last that it had
// begun: it cannot distinguish such a run from one that never began, which goes
// to another agent.
func (c *crash) maybeBegun(id string, lines []execLine) bool {
	accepted := map[int64]bool{}
	for _, e := range c.j.all() {
		if e.QueueID == id && e.Kind == "accept" {
			accepted[e.Fence] = true
		}
	}
	return c.silence && !slices.ContainsFunc(lines[:len(lines)-1], func(l execLine) bool { return accepted[l.Fence] })
}

// wantOrder: if neither of two tasks was requeued, and one was acknowledged
// before the other was sent, it is claimed first.
func (c *crash) wantOrder() {
	c.t.Helper()
	claims, claimed := map[string]int{}, map[string]int64{}
	for _, e := range c.j.all() {
		if e.Kind == "claim" {
			claims[e.QueueID]++
			claimed[e.QueueID] = e.Seq
		}
	}
	var once []sent
	for _, s := range c.tasks {
		if claims[s.id] == 1 {
			once = append(once, s)
		}
	}
	for _, fault := range disorder(once, claimed) {
		c.t.Error(fault)
	}
	c.t.Logf("%d tasks were claimed once, in order", len(once))
	if len(once) < len(c.tasks)/4 {
		c.t.Errorf("only %d of %d tasks were never requeued: the order of so few shows little", len(once), len(c.tasks))
	}
}

// disorder finds tasks that were claimed before a task that was acknowledged
// before they were sent. claimed is the position of each claim in the
// journal.
func disorder(tasks []sent, claimed map[string]int64) []string {
	tasks = slices.SortedFunc(slices.Values(tasks), func(a, b sent) int { return cmp.Compare(claimed[a.id], claimed[b.id]) })
	var faults []string
	for i, first := range tasks {
		for _, later := range tasks[i+1:] {
			if later.after.Before(first.before) {
				faults = append(faults, first.id+" was claimed before "+later.id+", which was acknowledged before it was sent")
			}
		}
	}
	return faults
}

// wantQuietLog: a director logs the end of a task once.
func (c *crash) wantQuietLog() {
	c.t.Helper()
	for _, r := range c.directors {
		for _, p := range r.all {
			c.wantQuietLogOf(p)
		}
	}
}

func (c *crash) wantQuietLogOf(p *process) {
	c.t.Helper()
	ended := map[string]int{}
	for line := range strings.Lines(p.err.text()) {
		if strings.Contains(line, "queue=task_ended") {
			ended[line[strings.Index(line, "queue_id="):]]++
		}
	}
	for line, n := range ended {
		if n > 1 {
			c.t.Errorf("director %d logged %d times: %s", p.pid(), n, line)
		}
	}
}

// The checks detect planted faults.
func TestTheChecksOfTheCrashTest(t *testing.T) {
	at := func(s int) time.Time { return time.Unix(int64(s), 0) }
	line := func(id, event string, pid, s int) execLine {
		return execLine{QueueID: id, TaskID: id, Event: event, PID: pid, At: at(s)}
	}
	died := deaths{7: {at(5), at(9)}} // the PID was reused
	for name, c := range map[string]struct {
		lines []execLine
		fault bool
	}{
		"one after the other":   {[]execLine{line("a", "start", 8, 1), line("a", "end", 8, 2), line("b", "start", 8, 3)}, false},
		"two at once":           {[]execLine{line("a", "start", 8, 1), line("b", "start", 8, 2)}, true},
		"after a kill":          {[]execLine{line("a", "start", 7, 1), line("b", "start", 8, 6)}, false},
		"the number again":      {[]execLine{line("a", "start", 7, 1), line("b", "start", 7, 6)}, false},
		"one that died before":  {[]execLine{line("a", "start", 7, 10), line("b", "start", 8, 11)}, true},
		"before the kill":       {[]execLine{line("a", "start", 7, 1), line("b", "start", 8, 4)}, true},
		"without a kill":        {[]execLine{line("a", "start", 8, 1), line("b", "start", 9, 6)}, true},
		"an end out of nowhere": {[]execLine{line("a", "end", 8, 1)}, true},
	} {
		if got := overlaps(c.lines, died); len(got) > 0 != c.fault {
			t.Errorf("%s: %v", name, got)
		}
	}
	tasks := []sent{{id: "a", before: at(1), after: at(2)}, {id: "b", before: at(3), after: at(5)}, {id: "c", before: at(4), after: at(6)}}
	for _, c := range []struct {
		claimed map[string]int64
		faults  int
	}{
		{map[string]int64{"a": 1, "b": 2, "c": 3}, 0},
		{map[string]int64{"a": 1, "b": 3, "c": 2}, 0}, // b and c were sent concurrently
		{map[string]int64{"a": 2, "b": 1, "c": 3}, 1},
		{map[string]int64{"a": 3, "b": 1, "c": 2}, 2},
	} {
		if got := disorder(tasks, c.claimed); len(got) != c.faults {
			t.Errorf("%v: %v", c.claimed, got)
		}
	}
}
