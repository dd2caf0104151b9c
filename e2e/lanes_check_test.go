package e2e_test

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/api"
	"github.com/signalbox-ai/signalbox/client"
)

// The hammer's checks of the callers' answers, the director's history and
// journal, and the agents' own logs.

// wantAllAnswered: every chat is one task, which has ended as its caller was
// told, and there are no other tasks.
func (h *hammer) wantAllAnswered() {
	h.t.Helper()
	listed := map[string]api.Task{}
	for task, err := range h.c.AllHistory(h.ctx(), client.HistoryOptions{Limit: 500}) {
		if err != nil {
			h.t.Fatal(err)
		}
		if _, twice := listed[task.QueueID]; twice {
			h.t.Errorf("%s stands twice in the history", task.QueueID)
		}
		listed[task.QueueID] = task
	}
	if len(h.chats) < h.hammering.chats || len(listed) != len(h.chats) {
		h.t.Errorf("at least %d chats were to be had, %d were, %d are in the history", h.hammering.chats, len(h.chats), len(listed))
	}
	for _, c := range h.chats {
		task, ok := listed[c.id]
		switch {
		case c.id == "" || !ok:
			h.t.Errorf("%s (%s) is not in the history", c.key, c.id)
		case !signalbox.State(c.state).Terminal() || task.State != c.state:
			h.t.Errorf("%s (%s) ended as %q for its caller, as %s (%s) for the director", c.key, c.id, c.state, task.State, task.Reason)
		case task.State != "completed" && task.Reason != c.reason:
			h.t.Errorf("%s (%s): its caller was told %q, the director says %s", c.key, c.id, c.reason, task.Reason)
		case task.Message == "" || task.Agent != c.agent && task.Agent != "":
			h.t.Errorf("%s (%s) at %s: %+v", c.key, c.id, c.agent, task)
		}
	}
}

// wantOneClaimAtATime: by the journal, an agent gets a task only after the
// previous one has released the slot.
func (h *hammer) wantOneClaimAtATime() {
	h.t.Helper()
	for _, fault := range doubleClaims(h.j.all()) {
		h.t.Error(fault)
	}
}

func doubleClaims(events []api.Event) (faults []string) {
	holds := map[string]string{} // agent → queue_id
	for _, e := range events {
		if e.QueueID == "" {
			continue
		}
		for agent, id := range holds {
			if id == e.QueueID && !signalbox.State(e.State).InFlight() {
				delete(holds, agent)
			}
		}
		if e.Kind == "claim" {
			if before := holds[e.Agent]; before != "" {
				faults = append(faults, fmt.Sprintf("%s was claimed for %s, which held %s (event %d)", e.QueueID, e.Agent, before, e.Seq))
			}
			holds[e.Agent] = e.QueueID
		}
	}
	return faults
}

// wantOneExecutionAtATime: in each agent's own log no two executions overlap.
// It returns the executions by task, in order.
func (h *hammer) wantOneExecutionAtATime() map[string][]laneLine {
	h.t.Helper()
	runs := map[string][]laneLine{}
	for _, r := range h.lanes {
		for _, fault := range overlaps(executions(h.t, h.logOf(r)), r.died) {
			h.t.Errorf("%s: %s", r.name, fault)
		}
		for _, run := range laneRuns(h.t, h.logOf(r)) {
			runs[run.QueueID] = append(runs[run.QueueID], run)
		}
	}
	return runs
}

// laneRuns reads an agent's log: the last line of each execution.
func laneRuns(t *testing.T, path string) []laneLine {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	var order []string
	last := map[string]laneLine{}
	for s := bufio.NewScanner(f); s.Scan(); {
		var l laneLine
		if err := json.Unmarshal(s.Bytes(), &l); err != nil {
			t.Fatalf("%s: %v in %q", path, err, s.Text())
		}
		id := fmt.Sprint(l.TaskID, l.PID)
		if l.Event == "start" {
			order = append(order, id)
		}
		last[id] = l
	}
	runs := make([]laneLine, len(order))
	for i, id := range order {
		runs[i] = last[id]
	}
	return runs
}

// wantDoublesWithReason: each execution was a claim of the director, and a
// task was executed again only with a higher fence and for a reason in the
// journal: it was lost and should be requeued, or the director had not heard
// that it had begun.
func (h *hammer) wantDoublesWithReason(runs map[string][]laneLine) {
	h.t.Helper()
	byTask := map[string][]api.Event{}
	for _, e := range h.j.all() {
		byTask[e.QueueID] = append(byTask[e.QueueID], e)
	}
	doubles, known := 0, 0
	for _, c := range h.chats {
		known += len(runs[c.id])
		for i, run := range runs[c.id] {
			if !slices.ContainsFunc(byTask[c.id], func(e api.Event) bool { return e.Kind == "claim" && e.Fence == run.Fence }) {
				h.t.Errorf("%s was executed under fence %d, which was never claimed", c.id, run.Fence)
			}
			if i == 0 {
				continue
			}
			doubles++
			before := runs[c.id][i-1]
			if run.Fence <= before.Fence {
				h.t.Errorf("%s was executed under fence %d after %d", c.id, run.Fence, before.Fence)
			}
			if fault := unreasonable(c, byTask[c.id], before.Fence); fault != "" {
				h.t.Errorf("%s was executed again, %s: %s", c.id, fault, kinds(h.j.all(), c.id))
			}
		}
	}
	all := 0
	for _, list := range runs {
		all += len(list)
	}
	if all != known {
		h.t.Errorf("%d executions, %d of them of tasks that someone asked for", all, known)
	}
	h.t.Logf("%d tasks were executed again", doubles)
}

// unreasonable returns what is wrong with another execution after the one
// with that fence.
func unreasonable(c *chatted, events []api.Event, fence int64) string {
	accepted := false
	for _, e := range events {
		if e.Fence != fence {
			continue
		}
		switch e.Kind {
		case "accept":
			accepted = true
		case "lost":
			if accepted && c.onLost != "requeue" {
				return "though it was to fail when lost"
			}
			return ""
		case "refuse", "unsent", "busy":
			if accepted {
				return "though its agent had accepted it"
			}
			return ""
		}
	}
	return "for no reason"
}

// wantOnlyTheirOwnResults: callers got the answer of the execution that held
// the slot, never that of one that was stopped or killed.
func (h *hammer) wantOnlyTheirOwnResults(runs map[string][]laneLine) {
	h.t.Helper()
	for _, c := range h.chats {
		list := runs[c.id]
		if c.state != "completed" {
			continue
		}
		if len(list) == 0 {
			h.t.Errorf("%s completed and was never executed", c.id)
			continue
		}
		last := list[len(list)-1]
		want := fmt.Sprintf("%s under fence %d", c.key, last.Fence)
		if strings.HasPrefix(c.agent, "daemon") {
			want = c.key
		} else if last.State != "completed" {
			h.t.Errorf("%s completed, its last execution: %+v", c.id, last)
		}
		if last.Event != "end" || !strings.HasSuffix(c.answer, want) {
			h.t.Errorf("%s was answered %q, its last execution: %+v", c.id, c.answer, last)
		}
	}
}

// The checks detect planted faults.
func TestTheChecksOfTheHammer(t *testing.T) {
	event := func(kind, id, state string, fence int64) api.Event {
		return api.Event{Kind: kind, QueueID: id, State: state, Agent: "x", Fence: fence}
	}
	for name, c := range map[string]struct {
		events []api.Event
		faults int
	}{
		"one after the other": {[]api.Event{event("claim", "a", "dispatching", 1), event("finish", "a", "completed", 1), event("claim", "b", "dispatching", 2)}, 0},
		"requeued":            {[]api.Event{event("claim", "a", "dispatching", 1), event("busy", "a", "pending", 1), event("claim", "a", "dispatching", 2)}, 0},
		"two at once":         {[]api.Event{event("claim", "a", "dispatching", 1), event("accept", "a", "working", 1), event("claim", "b", "dispatching", 2)}, 1},
	} {
		if got := doubleClaims(c.events); len(got) != c.faults {
			t.Errorf("%s: %v", name, got)
		}
	}
	accept, lost := event("accept", "a", "working", 1), event("lost", "a", "pending", 1)
	fail, requeue := &chatted{onLost: "fail"}, &chatted{onLost: "requeue"}
	for name, c := range map[string]struct {
		of     *chatted
		events []api.Event
		fault  bool
	}{
		"lost and to be requeued": {requeue, []api.Event{accept, lost}, false},
		"lost and to fail":        {fail, []api.Event{accept, lost}, true},
		"lost before it began":    {fail, []api.Event{lost}, false},
		"nothing happened":        {requeue, []api.Event{accept}, true},
		"refused after it began":  {requeue, []api.Event{accept, event("refuse", "a", "pending", 1)}, true},
	} {
		if got := unreasonable(c.of, c.events, 1); got != "" != c.fault {
			t.Errorf("%s: %q", name, got)
		}
	}
}
