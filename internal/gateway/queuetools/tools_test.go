package queuetools_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/signalbox-ai/signalbox/internal/testkit"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/api"
	"github.com/signalbox-ai/signalbox/internal/engine"
	"github.com/signalbox-ai/signalbox/internal/execution/push/agenttest"
	"github.com/signalbox-ai/signalbox/internal/gateway"
	"github.com/signalbox-ai/signalbox/internal/gateway/queuetools"
	"github.com/signalbox-ai/signalbox/internal/httpapi"
	"github.com/signalbox-ai/signalbox/internal/httpapi/apitest"
	"github.com/signalbox-ai/signalbox/toolqueue"
)

// queueTools are the tools in the order of lists.
var queueTools = []string{"cancel_task", "chat_with_agent", "land_task", "list_agents", "queue_status", "submit_task", "task_output", "task_status"}

// taskSaid is the answer of the tools for tasks.
type taskSaid struct {
	QueueID  string  `json:"queue_id"`
	State    string  `json:"state"`
	Ended    bool    `json:"ended"`
	Position int     `json:"position"`
	Queue    string  `json:"queue"`
	Replayed bool    `json:"replayed"`
	Agent    string  `json:"agent"`
	Tool     string  `json:"tool"`
	WaitsFor string  `json:"waits_for"`
	Reason   string  `json:"reason"`
	Message  string  `json:"message"`
	Result   *string `json:"result"`
	Next     string  `json:"next"`
	Landing  *struct {
		State, Text, Onto string
		LandTask          string `json:"land_task"`
	} `json:"landing"`
	Checks *struct {
		State  string            `json:"state"`
		Rounds int               `json:"rounds"`
		Checks map[string]string `json:"checks"`
	} `json:"checks"`
}

type outputSaid struct {
	QueueID   string `json:"queue_id"`
	State     string `json:"state"`
	Seq       int64  `json:"seq"`
	Text      string `json:"text"`
	Next      int64  `json:"next"`
	Truncated bool   `json:"truncated"`
	Done      bool   `json:"done"`
}

// A model can plan with the tools alone: it lists agents, submits, waits for
// the end, and reads the answer.
func TestQueueToolsPlan(t *testing.T) {
	inEras(t, func(t *testing.T, era string) {
		y := newFixture(t, options{agents: []agenttest.Options{{Name: "coder"}, {Name: "writer", Kind: "claude", Slots: 2}}})
		c := y.connect(era)
		var fleet struct{ Agents []map[string]any }
		list := c.call("list_agents", nil, &fleet)
		if len(fleet.Agents) != 2 || fleet.Agents[1]["name"] != "writer" || fleet.Agents[1]["kind"] != "claude" || fleet.Agents[1]["slots"] != 2.0 || fleet.Agents[0]["state"] != "idle" {
			t.Errorf("%v", fleet)
		}
		if want := "coder (demo): idle, 0 of 1 slots in use, 0 waiting, 0 of 1 parallel"; !strings.HasPrefix(list.text, want) {
			t.Errorf("%s, want %s", list.text, want)
		}

		var one, two taskSaid
		first := c.call("submit_task", args{"prompt": "Write the tests", "agent": "coder", "model": "sonnet"}, &one)
		if one.State != "pending" || one.Queue != "agent:coder" || !strings.Contains(first.text, "Queued: "+one.QueueID) || !strings.Contains(first.text, `task_status {"task_id": "`+one.QueueID+`"`) {
			t.Errorf("%+v %s", one, first.text)
		}
		run := y.agents["coder"].AwaitStart(1)
		if run.QueueID != one.QueueID || run.Prompt != "Write the tests" {
			t.Errorf("%+v", run)
		}
		if row := y.task(one.QueueID); row.Source != signalbox.SourceAPI || row.Mode != signalbox.ModeQueue {
			t.Errorf("%+v", row)
		}
		c.call("submit_task", args{"prompt": "Then run them", "agent": "coder"}, &two)
		if two.Position != 1 {
			t.Errorf("%+v", two)
		}
		var waits taskSaid
		status := c.call("task_status", args{"task_id": two.QueueID}, &waits)
		if waits.State != "pending" || waits.Ended || waits.Position != 1 || waits.WaitsFor == "" || waits.Next == "" || !strings.Contains(status.text, "It waits: "+strings.TrimSuffix(waits.WaitsFor, ".")) {
			t.Errorf("%+v %s", waits, status.text)
		}
		testkit.Wait(y.t, "the first runs", func() bool { return y.task(one.QueueID).State == signalbox.Working })
		var queue struct {
			Depth, Running int
			MaxSize        int                          `json:"max_size"`
			Agents         api.AgentCounts              `json:"agents"`
			Queues         []struct{ Queue, Depth any } `json:"queues"`
			Paused         []api.Pause                  `json:"paused"`
			State          string                       `json:"state"`
			Oldest         *int                         `json:"oldest_age_seconds"`
		}
		c.call("queue_status", nil, &queue)
		if queue.Depth != 1 || queue.Running != 1 || queue.MaxSize != 50 || queue.Agents.Up != 2 || len(queue.Queues) != 1 || queue.Queues[0].Queue != "agent:coder" || queue.State != "running" || queue.Oldest == nil {
			t.Errorf("%+v", queue)
		}

		ended := c.begin(t.Context(), "task_status", args{"task_id": one.QueueID, "wait_seconds": 60})
		y.agents["coder"].Print(one.QueueID, "3 tests pass\n")
		y.agents["coder"].Finish(one.QueueID, agenttest.End{Output: "They pass."})
		var end taskSaid
		got := testkit.Receive(t, "the end", ended)(&end)
		if end.State != "completed" || !end.Ended || end.Result == nil || *end.Result != "They pass." || end.Agent != "coder" || end.Next != "" || !strings.HasSuffix(got.text, "They pass.") {
			t.Errorf("%+v %s", end, got.text)
		}
		var out outputSaid
		c.call("task_output", args{"task_id": one.QueueID}, &out)
		if out.Text != "3 tests pass\n" || !out.Done || out.Next != 13 || out.State != "completed" {
			t.Errorf("%+v", out)
		}
	})
}

// A task that reaches a limit of its provider is parked: task_status names the cause and
// the time, and queue_status names the account.
func TestQueueToolsAtALimit(t *testing.T) {
	y := newFixture(t, options{agents: []agenttest.Options{{Name: "coder", Kind: "claude", Account: "claude-1"}}})
	c := y.connect(modernEra)
	testkit.Wait(t, "the account is known", func() bool {
		all, err := y.engine.Accounts(t.Context())
		return err == nil && len(all) == 1
	})
	var task taskSaid
	c.call("submit_task", args{"prompt": "Write the tests", "agent": "coder"}, &task)
	y.agents["coder"].AwaitStart(1)
	resets := time.Now().Add(time.Hour)
	y.agents["coder"].Finish(task.QueueID, agenttest.End{
		State: "failed", Error: &api.AgentError{Type: "usage_limit", Message: "limit"},
		Limit: &api.AgentLimit{Window: "five_hour", ResetsAt: &resets, Source: "event", Text: "limit", Began: true},
	})
	testkit.Wait(t, "it is parked, and the account known as closed", func() bool {
		return y.task(task.QueueID).State == signalbox.Parked && slices.ContainsFunc(y.engine.KnownAccounts(), func(a signalbox.Account) bool { return a.Name == "claude-1" && a.State == signalbox.AccountClosed })
	})
	var parked struct {
		taskSaid
		WaitingFor *api.WaitingFor `json:"waiting_for"`
	}
	status := c.call("task_status", args{"task_id": task.QueueID}, &parked)
	if parked.State != "parked" || parked.Ended || parked.WaitingFor == nil || parked.WaitingFor.Name != "claude-1" || parked.WaitingFor.Until == nil ||
		!strings.Contains(status.text, "account claude-1 is closed until ") || !strings.Contains(status.text, `task_status {"task_id"`) {
		t.Errorf("%+v %s", parked, status.text)
	}
	var queue struct {
		Accounts []struct {
			Account, State string
			Agents         []string
			Waiting        int
		} `json:"accounts_not_open"`
	}
	said := c.call("queue_status", nil, &queue)
	if len(queue.Accounts) != 1 || queue.Accounts[0].Account != "claude-1" || queue.Accounts[0].State != "closed" || queue.Accounts[0].Waiting != 1 || !slices.Equal(queue.Accounts[0].Agents, []string{"coder"}) ||
		!strings.Contains(said.text, "\naccount claude-1 is closed until ") || !strings.HasSuffix(said.text, "; 1 waiting, agents: coder") {
		t.Errorf("%+v %s", queue, said.text)
	}
	var end taskSaid
	if c.call("cancel_task", args{"task_id": task.QueueID}, &end); end.State != "cancelled" {
		t.Errorf("%+v", end)
	}
}

func TestQueueToolsCancel(t *testing.T) {
	inEras(t, func(t *testing.T, era string) {
		y := newFixture(t, options{})
		c := y.connect(era)
		var runs, waits, gone taskSaid
		c.call("submit_task", args{"prompt": "p", "agent": "coder"}, &runs)
		y.agents["coder"].AwaitStart(1)
		c.call("submit_task", args{"prompt": "p", "agent": "coder"}, &waits)
		for _, id := range []string{waits.QueueID, runs.QueueID} {
			text := c.call("cancel_task", args{"task_id": id}, &gone).text
			if gone.QueueID != id || gone.State != "cancelled" || !strings.Contains(text, id+" is cancelled") {
				t.Errorf("%+v %s", gone, text)
			}
		}
		if text := c.fails("cancel_task", args{"task_id": runs.QueueID}, signalbox.CodeAlreadyEnded); !strings.Contains(text, "cancelled") {
			t.Error(text)
		}
		var end taskSaid
		c.call("task_status", args{"task_id": waits.QueueID, "wait_seconds": 1}, &end)
		if end.State != "cancelled" || end.Reason != "cancelled" || end.Message == "" {
			t.Errorf("%+v", end)
		}
	})
}

// The status of a failed task has its reason and what the task left behind;
// the call itself is not an error.
func TestQueueToolsReportWhyATaskFailed(t *testing.T) {
	y := newFixture(t, options{})
	c := y.connect(modernEra)
	var task, end taskSaid
	c.call("submit_task", args{"prompt": "p", "agent": "coder", "timeout_seconds": 60, "priority": 3, "idempotency_key": "k"}, &task)
	y.agents["coder"].AwaitStart(1)
	code := 3
	y.agents["coder"].Finish(task.QueueID, agenttest.End{State: "failed", Output: "half of it", Exit: &code, Error: &api.AgentError{Type: "exit_nonzero", Message: "make: *** [test] Error 3"}})
	text := c.call("task_status", args{"task_id": task.QueueID, "wait_seconds": 60}, &end).text
	if end.State != "failed" || end.Reason != "exit_nonzero" || !strings.Contains(end.Message, "Error 3") || end.Result == nil || *end.Result != "half of it" {
		t.Errorf("%+v", end)
	}
	if want := task.QueueID + " has ended: failed (exit_nonzero). "; !strings.HasPrefix(text, want) {
		t.Errorf("%s, want %s…", text, want)
	}
	var again taskSaid
	c.call("submit_task", args{"prompt": "p", "agent": "coder", "timeout_seconds": 60, "priority": 3, "idempotency_key": "k"}, &again)
	if again.QueueID != task.QueueID || !again.Replayed {
		t.Errorf("%+v", again)
	}
	if text := c.fails("submit_task", args{"prompt": "another", "idempotency_key": "k"}, signalbox.CodeIdempotency); !strings.Contains(text, "idempotency_key") {
		t.Error(text)
	}
}

// The checks of a task are reported by state, without their output.
func TestQueueToolsReportChecks(t *testing.T) {
	y := newFixture(t, options{})
	c := y.connect(modernEra)
	var task, end taskSaid
	c.call("submit_task", args{"prompt": "p", "agent": "coder"}, &task)
	y.agents["coder"].AwaitStart(1)
	y.agents["coder"].Finish(task.QueueID, agenttest.End{State: "failed", Error: &api.AgentError{Type: "checks", Message: "test (exit status 1)"}, Checks: &api.AgentChecks{
		State: "failed", Rounds: 2, Results: []api.CheckResult{{Name: "test", State: "failed", Output: "a long output"}, {Name: "lint", State: "passed"}},
	}})
	text := c.call("task_status", args{"task_id": task.QueueID, "wait_seconds": 60}, &end).text
	if end.Reason != "checks" || end.Checks == nil || end.Checks.State != "failed" || end.Checks.Rounds != 2 || end.Checks.Checks["test"] != "failed" || end.Checks.Checks["lint"] != "passed" {
		t.Errorf("%+v %+v", end, end.Checks)
	}
	if !strings.Contains(text, "test (exit status 1). Checks: failed (test) after 2 rounds") || strings.Contains(text, "a long output") {
		t.Error(text)
	}
}

// One call returns a bounded part of the log; the rest is read piece by piece
// until the end, without gaps or duplicates.
func TestQueueToolsReadOutputInPieces(t *testing.T) {
	y := newFixture(t, options{})
	c := y.connect(legacyEra)
	var task taskSaid
	c.call("submit_task", args{"prompt": "p", "agent": "coder"}, &task)
	agent := y.agents["coder"]
	agent.AwaitStart(1)
	var log strings.Builder
	for i := 0; log.Len() < 80<<10; i++ {
		fmt.Fprintf(&log, "line %d: größer als ein Byte – je Zeichen\n", i)
	}
	read := func(from int64, wait int) (text string, next int64, done bool) {
		for {
			var out outputSaid
			c.call("task_output", args{"task_id": task.QueueID, "after": from, "wait_seconds": wait}, &out)
			if len(out.Text) > 32<<10 || out.Seq != from || out.Truncated {
				t.Fatalf("%d bytes at %d after %d, truncated %v", len(out.Text), out.Seq, from, out.Truncated)
			}
			text, from = text+out.Text, out.Next
			if out.Done || out.Text == "" {
				return text, from, out.Done
			}
		}
	}
	agent.Print(task.QueueID, log.String())
	testkit.Wait(y.t, "it prints", func() bool {
		var out outputSaid
		c.call("task_output", args{"task_id": task.QueueID}, &out)
		return out.Text != ""
	})
	live, next, done := read(0, 0)
	if live != log.String() || done {
		t.Errorf("%d of %d bytes while it runs, done %v", len(live), log.Len(), done)
	}
	agent.Print(task.QueueID, "the end\n")
	agent.Finish(task.QueueID, agenttest.End{Output: "ok"})
	if rest, _, done := read(next, 60); rest != "the end\n" || !done {
		t.Errorf("%q, done %v", rest, done)
	}
	if stored, _, done := read(0, 0); stored != log.String()+"the end\n" || !done {
		t.Errorf("%d bytes once it has ended, done %v", len(stored), done)
	}
}

// If the work queue is full, the model is told when to retry and what it can
// do.
func TestQueueToolsReportAFullQueue(t *testing.T) {
	y := newFixture(t, options{engine: engine.Options{MaxSize: 1}})
	c := y.connect(modernEra)
	var runs taskSaid
	c.call("submit_task", args{"prompt": "p", "agent": "coder"}, &runs)
	y.agents["coder"].AwaitStart(1)
	c.call("submit_task", args{"prompt": "p", "agent": "coder"}, nil)
	text := c.fails("submit_task", args{"prompt": "p", "agent": "coder"}, signalbox.CodeQueueFull)
	if !strings.Contains(text, "Try again in 30 seconds.") || !strings.Contains(text, "queue_status") {
		t.Error(text)
	}
	if err := y.engine.Pause(t.Context(), "", "deploy", "", time.Time{}); err != nil {
		t.Fatal(err)
	}
	if text := c.call("queue_status", nil, nil).text; !strings.Contains(text, "1 of 1 tasks wait, 1 run") || !strings.Contains(text, "all queues: paused, deploy") || !strings.Contains(text, "agent:coder: 1 waiting") {
		t.Error(text)
	}
}

// The definitions name every argument that the tools read, and nothing else;
// they are complete, and every schema is valid.
func TestQueueToolsAreDefined(t *testing.T) {
	y := newFixture(t, options{agents: []agenttest.Options{}})
	list, err := y.connect(modernEra).ListTools(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, tool := range list.Tools {
		names = append(names, tool.Name)
		a := tool.Annotations
		if tool.Title == "" || len(tool.Description) < 100 || a == nil || a.DestructiveHint == nil || a.OpenWorldHint == nil || tool.OutputSchema == nil {
			t.Errorf("the definition of %s is incomplete: %+v", tool.Name, tool)
		}
		if want := strings.HasPrefix(tool.Name, "task_") || tool.Name == "list_agents" || tool.Name == "queue_status"; a.ReadOnlyHint != want {
			t.Errorf("%s: read only %v", tool.Name, a.ReadOnlyHint)
		}
		var in struct {
			Type       string
			Properties map[string]struct{ Description string }
			Additional *bool `json:"additionalProperties"`
		}
		data, err := json.Marshal(tool.InputSchema)
		if err != nil {
			t.Fatal(err)
		}
		if err := json.Unmarshal(data, &in); err != nil {
			t.Fatal(err)
		}
		if in.Type != "object" || in.Additional == nil || *in.Additional {
			t.Errorf("%s accepts an unknown argument: %s", tool.Name, data)
		}
		var properties []string
		for name, p := range in.Properties {
			properties = append(properties, name)
			if p.Description == "" {
				t.Errorf("%s: %s has no description", tool.Name, name)
			}
		}
		slices.Sort(properties)
		if reads := queuetools.Arguments(tool.Name); !slices.Equal(properties, reads) {
			t.Errorf("%s defines %v and reads %v", tool.Name, properties, reads)
		}
	}
	if !slices.Equal(names, queueTools) {
		t.Errorf("%v", names)
	}
}

// Without a director, and on a gateway without one, the tools say so.
func TestQueueToolsNeedADirector(t *testing.T) {
	b := apitest.New(t)
	alone := queuetools.New()
	if _, err := httpapi.New(httpapi.Config{Engine: b.Engine, ToolsOnly: true, QueueTools: alone}); err == nil || !strings.Contains(err.Error(), "no queue") {
		t.Errorf("a gateway alone: %v", err)
	}
	if s := alone.Server(); s.Name != "signalbox" || s.Kind != "internal" || s.State != "ready" || s.Tools != len(queueTools) {
		t.Errorf("%+v", s)
	}
}

// The tools also work over REST, with the same rules.
func TestQueueToolsOverREST(t *testing.T) {
	y := newFixture(t, options{})
	b := &apitest.Fixture{T: t, Server: y.dir}
	var out api.ToolResult
	b.Do("POST", "/api/tools/submit_task/call", `{"arguments":{"prompt":"p","agent":"coder"}}`).Want(t, http.StatusOK, &out)
	var task taskSaid
	if err := json.Unmarshal(out.StructuredContent, &task); err != nil || out.IsError || task.QueueID != y.agents["coder"].AwaitStart(1).QueueID {
		t.Errorf("%+v, %v", out, err)
	}
	b.Do("POST", "/api/tools/task_status/call", `{"arguments":{"task_id":"`+task.QueueID+`","more":1}}`).Want(t, http.StatusOK, &out)
	if !out.IsError || !strings.Contains(string(out.Content), "more is not a known field") {
		t.Errorf("%s", out.Content)
	}
	y.agents["coder"].Finish(task.QueueID, agenttest.End{})
	var tools api.Tools
	b.Do("GET", "/api/tools", "").Want(t, http.StatusOK, &tools)
	if len(tools.Tools) != len(queueTools) || tools.Tools[0].Kind != "internal" || tools.Tools[0].Server != "signalbox" || tools.Tools[0].Queue != "" {
		t.Errorf("%+v", tools.Tools)
	}
}

// namesake is a provider whose tools have the names of the queue's tools.
type provider = queuetools.Tools // a name that differs from its method Tools

type namesake struct{ *provider }

func (namesake) Name() string { return "other" }

// A tool with the name of one of the queue's tools is an error, whichever
// provider has it.
func TestQueueToolsKeepTheirNames(t *testing.T) {
	for _, providers := range [][]gateway.Provider{
		{queuetools.New(), namesake{queuetools.New()}},
		{namesake{queuetools.New()}, queuetools.New()},
	} {
		_, err := gateway.New(gateway.Options{Queues: toolqueue.New(toolqueue.Hooks{}), Providers: providers})
		for _, name := range queueTools {
			if err == nil || !strings.Contains(err.Error(), fmt.Sprintf("the tool %q is left out", name)) {
				t.Errorf("%s: %v", name, err)
			}
		}
	}
}

// A call without an HTTP request, as from another kind of gateway, is told
// where to call the tools.
func TestQueueToolsNeedARequest(t *testing.T) {
	y := newFixture(t, options{agents: []agenttest.Options{}})
	for _, tools := range []*queuetools.Tools{y.tools, queuetools.New()} {
		if _, err := tools.Call(t.Context(), gateway.Call{Tool: "list_agents"}); signalbox.CodeOf(err) != signalbox.CodeUnavailable || !strings.Contains(err.Error(), "/mcp") {
			t.Errorf("%v", err)
		}
	}
}
