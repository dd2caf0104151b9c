package e2e_test

import (
	"cmp"
	"slices"
	"strings"
	"testing"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/api"
	"github.com/signalbox-ai/signalbox/client"
)

// What the crash test asks of the evidence: the director's answers, its
// journal, and the agents' own logs.

// wantOneEndEach: every acknowledged task has ended, exactly once, and there
// is no task beside those that were acknowledged.
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
			c.t.Errorf("%s stands %d times in the history", id, listed[id])
		}
	}
	if queue, err := c.c.Queue(c.ctx(), client.QueueOptions{}); err != nil || queue.Depth != 0 || queue.DispatchedCount != 0 {
		c.t.Errorf("the queue is not empty: %+v, %v", queue, err)
	}
}

// wantNoOverlap: in each agent's own log an execution begins after the one
// before has ended, or its process had been killed. It returns what each
// agent executed.
func (c *crash) wantNoOverlap() map[string][]execLine {
	c.t.Helper()
	runs := map[string][]execLine{}
	for _, r := range c.agents {
		open := map[int]execLine{} // slot → execution under way
		for _, l := range executions(c.t, c.execLogOf(r)) {
			before, busy := open[l.Slot]
			switch l.Event {
			case "start":
				if died, killed := r.died[before.PID]; busy && (!killed || before.PID == l.PID || died.After(l.At)) {
					c.t.Errorf("%s: %s began while %s was under way", r.name, l.QueueID, before.QueueID)
				}
				open[l.Slot] = l
				runs[l.QueueID] = append(runs[l.QueueID], l)
			case "end":
				if !busy || before.TaskID != l.TaskID {
					c.t.Errorf("%s: %s ended, %s was under way", r.name, l.QueueID, before.QueueID)
				}
				delete(open, l.Slot)
			}
		}
	}
	return runs
}

// wantGrowingFences: a task that was executed again had a higher fence, and
// only where it asked for that; one that completed was executed.
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
		if len(lines) > 1 && s.onLost == "fail" {
			c.t.Errorf("%s was executed %d times though it fails when it is lost: %s", s.id, len(lines), kinds(c.j.all(), s.id))
		}
		task := ended[s.id]
		if task.State == "completed" && (len(lines) == 0 || task.Fence != lines[len(lines)-1].Fence) {
			c.t.Errorf("%s completed under fence %d, executed: %+v", s.id, task.Fence, lines)
		}
		if s.onLost == "requeue" && task.State != "completed" {
			c.t.Errorf("%s was to be requeued when lost, but ended as %s (%s): %s", s.id, task.State, task.Reason, task.Message)
		}
	}
	c.t.Logf("%d tasks were executed more than once", again)
}

// wantOrder: of two tasks that were never requeued, the one that was
// acknowledged before the other was sent is claimed first.
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
	slices.SortFunc(once, func(a, b sent) int { return cmp.Compare(claimed[a.id], claimed[b.id]) })
	for i, first := range once {
		for _, later := range once[i+1:] {
			if later.after.Before(first.before) {
				c.t.Errorf("%s was claimed before %s, which was acknowledged before it was sent", first.id, later.id)
			}
		}
	}
	c.t.Logf("%d tasks were claimed once, in order", len(once))
	if len(once) < len(c.tasks)/4 {
		c.t.Errorf("only %d of %d tasks were never requeued: the order of so few shows little", len(once), len(c.tasks))
	}
}

// wantQuietLog: a director logs the end of a task once.
func (c *crash) wantQuietLog() {
	c.t.Helper()
	for _, p := range c.director.all {
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
}

// The checks themselves find what they look for.
func TestTheCrashTestWouldNoticeAnOverlap(t *testing.T) {
	b := newBox(t)
	path := b.file("exec.jsonl", `{"queue_id":"a","task_id":"1","slot":0,"event":"start","pid":7}
{"queue_id":"b","task_id":"2","slot":0,"event":"start","pid":7}
`, 0o600)
	if got := starts(executions(t, path)); !slices.Equal(got, []string{"a", "b"}) {
		t.Errorf("starts: %v", got)
	}
}
