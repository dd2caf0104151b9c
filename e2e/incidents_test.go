package e2e_test

import (
	"maps"
	"net/http"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/signalbox-ai/signalbox/api"
	"github.com/signalbox-ai/signalbox/client"
)

var namedTest = regexp.MustCompile("`([a-z0-9/.]+)` ((?:Test|Fuzz)[A-Za-z0-9]+)")

var incidentForm = regexp.MustCompile("`([a-z0-9/]+)` (TestIncident[A-Za-z0-9]+)")

// docs/development/incidents.md names exactly the existing incident tests.
func TestIncidentsHaveTheirTests(t *testing.T) {
	page, err := os.ReadFile("../docs/development/incidents.md")
	if err != nil {
		t.Fatal(err)
	}
	named := map[string]bool{}
	for line := range strings.Lines(string(page)) {
		tests := incidentForm.FindAllStringSubmatch(line, -1)
		if strings.Count(line, " | ") == 2 && !strings.HasPrefix(line, "| what") && len(tests) == 0 {
			t.Errorf("an incident without a test: %s", line)
		}
		for _, m := range tests {
			named[m[1]+" "+m[2]] = true
		}
	}
	if len(named) < 20 {
		t.Errorf("the page names %d tests only", len(named))
	}
	there := incidentTests(t)
	for name := range named {
		if !there[name] {
			t.Errorf("docs/development/incidents.md names %s, and there is no such test", name)
		}
	}
	for name := range there {
		if !named[name] {
			t.Errorf("docs/development/incidents.md does not name %s", name)
		}
	}
}

// The page on faults that were found from outside names existing tests.
func TestFaultsFoundFromOutsideHaveTheirTests(t *testing.T) {
	page, err := os.ReadFile("../docs/development/incidents.md")
	if err != nil {
		t.Fatal(err)
	}
	_, section, _ := strings.Cut(string(page), "## Faults found from outside")
	there, rows := allTests(t), 0
	for line := range strings.Lines(section) {
		if strings.Count(line, " | ") != 3 || strings.HasPrefix(line, "| finding") {
			continue
		}
		rows++
		tests := namedTest.FindAllStringSubmatch(line, -1)
		if len(tests) == 0 {
			t.Errorf("no test is named: %s", line)
		}
		for _, m := range tests {
			if !there[m[1]+" "+m[2]] {
				t.Errorf("docs/development/incidents.md names %s %s, and there is no such test", m[1], m[2])
			}
		}
	}
	if rows == 0 {
		t.Error("there is no table")
	}
}

// incidentTests are the incident tests in the sources, by folder and name.
func incidentTests(t *testing.T) map[string]bool {
	t.Helper()
	found := allTests(t)
	maps.DeleteFunc(found, func(name string, _ bool) bool {
		return !strings.Contains(name, " TestIncident") || name == "e2e TestIncidentsHaveTheirTests"
	})
	return found
}

// Director and agent die at once, in the middle of a chat with others waiting
// and an isolated task. When both are back, nothing is stuck: every row and
// every activity has ended, and no slot is held.
func TestIncidentStuckForEver(t *testing.T) {
	b := newBox(t)
	addr, agentAddr := freePort(t), freePort(t)
	director := b.director("--addr", addr)
	agent := b.agent("coder", director.url, "--addr", agentAddr)
	c := b.client(director.url)
	b.untilState(c, "coder", "idle")
	var ids []string
	for i, call := range []struct{ path, body string }{
		{"chat", `{"message": "sleep 10m, in its slot"}`},
		{"chat", `{"message": "sleep 1ms, in line"}`},
		{"chat", `{"message": "sleep 1ms, in the backlog", "overflow": "persist"}`},
		{"task", `{"message": "sleep 10m, beside"}`},
	} {
		code, said := b.ask(http.MethodPost, director.url+"/api/agents/coder/"+call.path, call.body, "Prefer", "respond-async")
		if code != http.StatusAccepted {
			t.Fatalf("%s: %d %s", call.body, code, said)
		}
		ids = append(ids, parse[api.ChatAccepted](t, said).Execution.ID)
		if i == 0 {
			b.untilBusy(c, "coder")
		}
	}
	b.until("the isolated task runs", func() bool {
		lane, err := c.Lane(b.ctx(), "coder")
		return err == nil && len(lane.Bypass) == 1 && lane.Bypass[0].Status == "running"
	})
	director.kill()
	agent.kill()
	b.director("--addr", addr)
	b.agent("coder", director.url, "--addr", agentAddr)
	for i, id := range ids {
		task := b.end(c, id)
		if want := []string{"interrupted", "completed", "completed", "interrupted"}[i]; task.Reason != want || task.Message == "" {
			t.Errorf("%s ended as %s (%s): %s", task.PromptPreview, task.State, task.Reason, task.Message)
		}
	}
	lane, err := c.Lane(b.ctx(), "coder")
	if err != nil || lane.IsBusy || lane.QueueLength+len(lane.Executions)+len(lane.Bypass) != 0 {
		t.Errorf("the lane: %+v, %v", lane, err)
	}
	agents, err := c.Agents(b.ctx())
	if err != nil || len(agents) != 1 || agents[0].InUse+len(agents[0].Running)+len(agents[0].Isolated)+agents[0].Waiting != 0 {
		t.Errorf("the agent: %+v, %v", agents, err)
	}
	for _, state := range []string{"queued", "started"} {
		open, err := c.Activities(b.ctx(), client.ActivitiesOptions{State: state})
		if err != nil || len(open.Activities) != 0 {
			t.Errorf("activities that are %s: %+v, %v", state, open.Activities, err)
		}
	}
	if status, err := c.Status(b.ctx()); err != nil || status.Queue.Depth+status.Queue.DispatchedCount != 0 {
		t.Errorf("status: %+v, %v", status, err)
	}
}

// The backlog of an agent is processed as soon as the agent is up, in order,
// by the real program with a real agent, including tasks stored before a
// restart.
func TestIncidentDrainDeadBehindAMock(t *testing.T) {
	b := newBox(t)
	addr := freePort(t)
	director := b.director("--addr", addr)
	agent := b.agent("coder", director.url)
	c := b.client(director.url)
	b.untilState(c, "coder", "idle")
	agent.stop()
	b.untilState(c, "coder", "down")
	var ids []string
	for range 8 { // more than may wait for it
		code, said := b.ask(http.MethodPost, director.url+"/api/agents/coder/chat",
			`{"message": "sleep 1ms", "overflow": "persist"}`, "Prefer", "respond-async")
		if code != http.StatusAccepted {
			t.Fatalf("%d %s", code, said)
		}
		ids = append(ids, parse[api.ChatAccepted](t, said).Execution.ID)
	}
	director.stop()
	b.director("--addr", addr)
	b.agent("coder", director.url)
	for _, id := range ids {
		b.completed(c, id)
	}
	if got := strings.Join(starts(executions(t, b.execLog())), " "); got != strings.Join(ids, " ") {
		t.Errorf("the backlog was executed in the order\n%s, stored in\n%s", got, strings.Join(ids, " "))
	}
}
