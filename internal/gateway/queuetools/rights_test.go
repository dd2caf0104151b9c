package queuetools_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/signalbox-ai/signalbox/internal/testkit"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/internal/execution/push/agenttest"
	"github.com/signalbox-ai/signalbox/internal/httpapi/apitest"
	"github.com/signalbox-ai/signalbox/internal/identity"
)

// auth returns the header with a token, and more headers.
func auth(token string, more ...string) []string {
	return append([]string{"Authorization", "Bearer " + token}, more...)
}

// Each tool needs the scope of its action. A token without that scope sees
// the tool and is told which scope is missing; the refusal is in the audit
// log.
func TestQueueToolsNeedRights(t *testing.T) {
	y := newFixture(t, options{token: apitest.Secret})
	needs := map[string]signalbox.Scope{
		"submit_task": signalbox.ScopeSubmit, "chat_with_agent": signalbox.ScopeSubmit, "cancel_task": signalbox.ScopeCancel, "land_task": signalbox.ScopeCancel,
		"task_status": signalbox.ScopeRead, "task_output": signalbox.ScopeRead, "list_agents": signalbox.ScopeRead, "queue_status": signalbox.ScopeRead,
	}
	admin := y.connect(modernEra, auth(apitest.Secret)...)
	var task taskSaid
	done := y.worked(admin, nil)
	admin.call("submit_task", args{"prompt": "p", "agent": "coder"}, &task)
	y.agents["coder"].AwaitStart(1)
	asks := map[string]args{
		"submit_task": {"prompt": "p"}, "chat_with_agent": {"agent": "coder", "message": "m", "wait_seconds": 0}, "cancel_task": {"task_id": task.QueueID}, "land_task": {"task_id": done.QueueID},
		"task_status": {"task_id": task.QueueID}, "task_output": {"task_id": task.QueueID}, "list_agents": {}, "queue_status": {},
	}
	for _, has := range []signalbox.Scope{signalbox.ScopeTool, signalbox.ScopeRead, signalbox.ScopeSubmit, signalbox.ScopeCancel} {
		name := "bot-" + string(has)
		c := y.connect(modernEra, auth(y.token(identity.NewToken{Name: name, Scopes: []signalbox.Scope{signalbox.ScopeTool, has}}))...)
		list, err := c.ListTools(t.Context(), nil)
		if err != nil || len(list.Tools) != len(queueTools) {
			t.Fatalf("%v, %v", list, err)
		}
		for _, tool := range queueTools {
			if needs[tool] == has {
				c.call(tool, asks[tool], nil)
				continue
			}
			text := c.fails(tool, asks[tool], signalbox.CodeForbidden)
			if !strings.Contains(text, "this needs the scope "+string(needs[tool])) || !strings.Contains(text, name) {
				t.Errorf("%s: %s", tool, text)
			}
		}
	}
	b := &apitest.Fixture{T: t, Server: y.dir}
	denied := 0
	for _, row := range b.AuditRows() {
		if row.Result == "denied" {
			denied++
		}
	}
	if denied == 0 {
		t.Error("no refusal was recorded")
	}
}

// A token limited to some agents sees and uses only these.
func TestQueueToolsRespectTheLimitsOfAToken(t *testing.T) {
	y := newFixture(t, options{token: apitest.Secret, agents: []agenttest.Options{{Name: "coder"}, {Name: "writer"}}})
	admin := y.connect(modernEra, auth(apitest.Secret)...)
	var theirs, mine, more taskSaid
	admin.call("submit_task", args{"prompt": "p", "agent": "coder"}, &theirs)
	y.agents["coder"].AwaitStart(1)
	admin.call("submit_task", args{"prompt": "p", "agent": "coder"}, &more)
	all := []signalbox.Scope{signalbox.ScopeRead, signalbox.ScopeSubmit, signalbox.ScopeCancel, signalbox.ScopeTool}
	c := y.connect(legacyEra, auth(y.token(identity.NewToken{Name: "limited", Scopes: all, Agents: []string{"writer"}}))...)
	if text := c.call("list_agents", nil, nil).text; !strings.HasPrefix(text, "writer (") || strings.Contains(text, "coder") {
		t.Error(text)
	}
	if text := c.call("queue_status", nil, nil).text; strings.Contains(text, "coder") || !strings.Contains(text, "1 of 50 tasks wait, 1 run") {
		t.Error(text)
	}
	for _, id := range []string{theirs.QueueID, more.QueueID} {
		for _, tool := range []string{"task_status", "task_output", "cancel_task"} {
			if text := c.fails(tool, args{"task_id": id}, signalbox.CodeNotFound); strings.Contains(text, "coder") {
				t.Error(text)
			}
		}
	}
	for _, parallel := range []bool{false, true} {
		if text := c.fails("chat_with_agent", hello(args{"parallel": parallel}), signalbox.CodeNotFound); !strings.Contains(text, "coder") {
			t.Error(text)
		}
	}
	c.fails("submit_task", args{"prompt": "p", "agent": "coder"}, signalbox.CodeNotFound)
	c.call("submit_task", args{"prompt": "p", "agent": "writer"}, &mine)
	y.agents["writer"].AwaitStart(1)
	c.call("cancel_task", args{"task_id": mine.QueueID}, nil)
}

// An agent that calls the tools with its own token is identified as that
// agent: its requests belong to the execution that makes them, and their
// source is an agent.
func TestQueueToolsKnowTheAgentThatCalls(t *testing.T) {
	inEras(t, func(t *testing.T, era string) {
		y := newFixture(t, options{token: apitest.Secret, agents: []agenttest.Options{{Name: "lead", Slots: 2}, {Name: "coder"}}})
		admin := y.connect(era, auth(apitest.Secret)...)
		var root, second, child taskSaid
		admin.call("submit_task", args{"prompt": "p", "agent": "lead"}, &root)
		y.agents["lead"].AwaitStart(1)
		own := y.token(identity.NewToken{Name: "of-lead", Agent: "lead"})
		c := y.connect(era, auth(own, "X-Source-Agent", "lead")...)
		c.call("submit_task", args{"prompt": "help", "agent": "coder"}, &child)
		row := y.task(child.QueueID)
		if row.Source != signalbox.SourceAgent || row.Owner != "agent:lead" || row.ParentID != root.QueueID || row.Depth != 1 || row.Waits {
			t.Errorf("%+v", row)
		}
		y.agents["coder"].AwaitStart(1)
		y.agents["coder"].Finish(child.QueueID, agenttest.End{})

		// An agent with several executions names the one that calls.
		admin.call("submit_task", args{"prompt": "p", "agent": "lead"}, &second)
		y.agents["lead"].AwaitStart(2)
		testkit.Wait(y.t, "both run", func() bool { return y.task(second.QueueID).State == signalbox.Working })
		named := y.connect(era, auth(own, "X-Signalbox-Execution", second.QueueID)...)
		turn := named.begin(t.Context(), "chat_with_agent", hello())
		run := y.agents["coder"].AwaitStart(2)
		row = y.task(run.QueueID)
		if row.ParentID != second.QueueID || !row.Waits || row.Mode != signalbox.ModeChat || row.Source != signalbox.SourceAgent {
			t.Errorf("%+v", row)
		}
		// Coder in turn calls lead, and all slots of lead wait for coder: that would
		// deadlock, so it is refused with a hint.
		other := y.token(identity.NewToken{Name: "of-coder", Agent: "coder"})
		back := y.connect(era, auth(other)...)
		busy := y.connect(era, auth(own, "X-Signalbox-Execution", root.QueueID)...).begin(t.Context(), "chat_with_agent", hello())
		testkit.Wait(y.t, "both of lead's executions wait for coder", func() bool {
			n := 0
			for _, e := range y.journal() {
				if e.Kind == signalbox.EventSubmit {
					n++
				}
			}
			return n == 5
		})
		text := back.fails("chat_with_agent", args{"agent": "lead", "message": "m"}, signalbox.CodeCallCycle)
		if !strings.Contains(text, "wait for itself") || !strings.Contains(text, "wait_seconds 0") {
			t.Error(text)
		}
		back.call("chat_with_agent", args{"agent": "lead", "message": "m", "wait_seconds": 0}, nil) // allowed without waiting
		y.agents["coder"].Finish(run.QueueID, agenttest.End{Output: "hm"})
		testkit.Receive(t, "the answer", turn)(nil)
		y.agents["coder"].Finish(y.agents["coder"].AwaitStart(3).QueueID, agenttest.End{})
		testkit.Receive(t, "the other answer", busy)(nil)
	})
}

func (y *fixture) journal() []signalbox.Entry {
	y.t.Helper()
	entries, err := y.store.Journal(y.t.Context(), 0, 1000)
	if err != nil {
		y.t.Fatal(err)
	}
	return entries
}

// Agents that call one another without end are stopped, with a message that
// the last agent can act on.
func TestQueueToolsStopAgentsThatCallOneAnother(t *testing.T) {
	fleet := []agenttest.Options{}
	for i := range signalbox.MaxCallDepth + 2 {
		fleet = append(fleet, agenttest.Options{Name: fmt.Sprintf("a%d", i)})
	}
	y := newFixture(t, options{token: apitest.Secret, agents: fleet})
	y.connect(modernEra, auth(apitest.Secret)...).call("submit_task", args{"prompt": "p", "agent": "a0"}, nil)
	for i := range signalbox.MaxCallDepth + 1 {
		agent := y.agents[fmt.Sprintf("a%d", i)]
		id := agent.AwaitStart(1).QueueID
		testkit.Wait(y.t, agent.Name+" works", func() bool { return y.task(id).State == signalbox.Working })
		c := y.connect(modernEra, auth(y.token(identity.NewToken{Name: agent.Name, Agent: agent.Name}))...)
		call := args{"prompt": "p", "agent": fmt.Sprintf("a%d", i+1)}
		if i < signalbox.MaxCallDepth {
			c.call("submit_task", call, nil)
			continue
		}
		if text := c.fails("submit_task", call, signalbox.CodeCallDepth); !strings.Contains(text, "do the rest in "+agent.Name+" itself") {
			t.Error(text)
		}
	}
}

// Identity headers count only with an agent's own token, here as everywhere:
// the tools add no way around this rule.
func TestQueueToolsBelieveNoForgedHeaders(t *testing.T) {
	y := newFixture(t, options{token: apitest.Secret, agents: []agenttest.Options{{Name: "lead"}, {Name: "coder"}}})
	for _, headers := range [][]string{{"X-Source-Agent", "lead"}, {"X-Signalbox-Execution", "queue-01h00000000000000000000000"}} {
		b := &apitest.Fixture{T: t, Server: y.dir}
		b.Do("POST", "/mcp", `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"submit_task","arguments":{"prompt":"p"}}}`,
			apitest.Bearer(apitest.Secret), apitest.Header(headers[0], headers[1])).WantError(t, 403, signalbox.CodeForbidden)
	}
	// The arguments cannot set the identity either.
	c := y.connect(modernEra, auth(y.token(identity.NewToken{Name: "bot", Scopes: []signalbox.Scope{signalbox.ScopeTool, signalbox.ScopeSubmit}}))...)
	for _, name := range []string{"source", "owner", "env", "waits", "parent_id"} {
		if text := c.fails("submit_task", args{"prompt": "p", name: "lead"}, signalbox.CodeValidation); !strings.Contains(text, name+" is not a known field") {
			t.Error(text)
		}
	}
	// Revoking a token while a call waits ends the call and cancels its turn.
	known, token, err := y.id.CreateToken(t.Context(), identity.NewToken{Name: "brief", Scopes: []signalbox.Scope{signalbox.ScopeTool, signalbox.ScopeSubmit}})
	if err != nil {
		t.Fatal(err)
	}
	turn := y.connect(modernEra, auth(token)...).begin(t.Context(), "chat_with_agent", hello())
	id := y.agents["coder"].AwaitStart(1).QueueID
	if _, err := y.id.RevokeToken(t.Context(), known.ID); err != nil {
		t.Fatal(err)
	}
	testkit.Receive(t, "the end of the call", turn)
	testkit.Wait(y.t, "the turn is cancelled", func() bool { return y.task(id).State == signalbox.Cancelled })
}

// Invalid input is refused with the name of the argument and the rule, and
// nothing is stored.
func TestQueueToolsRefuseBadInput(t *testing.T) {
	y := newFixture(t, options{})
	c := y.connect(modernEra)
	const id = "queue-01h00000000000000000000000"
	big := strings.Repeat("x", 2<<20)
	deep := json.RawMessage(`{"prompt":"p","project":` + strings.Repeat(`{"a":`, 40) + `1` + strings.Repeat(`}`, 41))
	for _, bad := range []struct {
		tool string
		args any
		code signalbox.Code
		says string
	}{
		{"submit_task", args{}, signalbox.CodeValidation, "prompt"},
		{"submit_task", args{"prompt": ""}, signalbox.CodeValidation, "prompt"},
		{"submit_task", args{"prompt": 7}, signalbox.CodeValidation, "prompt must be a string, not a number"},
		{"submit_task", args{"prompt": []string{"p"}}, signalbox.CodeValidation, "prompt must be a string"},
		{"submit_task", args{"prompt": "p", "priority": 11}, signalbox.CodeValidation, "priority must be -10 to 10"},
		{"submit_task", args{"prompt": "p", "priority": 1.5}, signalbox.CodeValidation, "priority must be a whole number"},
		{"submit_task", args{"prompt": "p", "timeout_seconds": -1}, signalbox.CodeValidation, "timeout_seconds"},
		{"submit_task", args{"prompt": "p", "timeout_seconds": 1 << 40}, signalbox.CodeValidation, "timeout_seconds"},
		{"submit_task", args{"prompt": "p", "agent": "coder", "kind": "claude"}, signalbox.CodeValidation, "kind"},
		{"submit_task", args{"prompt": "p", "agent": "../coder"}, signalbox.CodeValidation, "agent"},
		{"submit_task", args{"prompt": "p", "agent": "commands@local"}, "", "commands@local"},
		{"submit_task", args{"prompt": "p", "session_id": "a b"}, signalbox.CodeValidation, "session_id"},
		{"submit_task", args{"prompt": "p", "model": "a\nb"}, signalbox.CodeValidation, "model"},
		{"submit_task", args{"prompt": "p", "not_before": "tomorrow"}, signalbox.CodeValidation, "not_before must be a time"},
		{"submit_task", args{"prompt": "p", "project": "here"}, signalbox.CodeValidation, "project must be an object"},
		{"submit_task", args{"prompt": "p", "project": args{"path": "/", "more": 1}}, signalbox.CodeValidation, "project.more is not a known field"},
		{"submit_task", args{"prompt": "p", "idempotency_key": ""}, signalbox.CodeValidation, "Idempotency-Key"},
		{"submit_task", args{"prompt": "p", "idempotency_key": "a\r\nX-Source-Agent: lead"}, signalbox.CodeValidation, ""},
		{"submit_task", args{"prompt": "p", "idempotency_key": strings.Repeat("k", 256)}, signalbox.CodeValidation, ""},
		{"submit_task", args{"prompt": "p\x00q"}, signalbox.CodeValidation, "prompt"},
		{"submit_task", args{"prompt": big}, signalbox.CodeTooLarge, ""},
		{"submit_task", json.RawMessage(`{"prompt":"p","prompt":"q"}`), signalbox.CodeValidation, "twice"},
		{"submit_task", json.RawMessage(`{"prompt":"\ud800"}`), signalbox.CodeValidation, "surrogate"},
		{"submit_task", deep, signalbox.CodeValidation, "nested too deep"},
		{"task_status", args{}, signalbox.CodeValidation, "task_id is missing"},
		{"task_status", args{"task_id": 1}, signalbox.CodeValidation, "task_id must be a string"},
		{"task_status", args{"task_id": id}, signalbox.CodeNotFound, id},
		{"task_status", args{"task_id": "../../api/tokens"}, signalbox.CodeNotFound, "is not the id of a task"},
		{"task_status", args{"task_id": id, "wait_seconds": 61}, signalbox.CodeValidation, "wait_seconds must be 0 to 60"},
		{"task_status", args{"task_id": id, "wait_seconds": -1}, signalbox.CodeValidation, "wait_seconds must be 0 to 60"},
		{"task_status", args{"task_id": id, "wait_seconds": "60"}, signalbox.CodeValidation, "wait_seconds must be a whole number"},
		{"task_output", args{"task_id": id}, signalbox.CodeNotFound, id},
		{"task_output", args{"task_id": id, "after": -1}, signalbox.CodeValidation, "after"},
		{"cancel_task", args{"task_id": id}, signalbox.CodeNotFound, id},
		{"cancel_task", args{"task_id": "queue-x?force=1"}, signalbox.CodeNotFound, "is not the id of a task"},
		{"list_agents", args{"all": true}, signalbox.CodeValidation, "all is not a known field"},
		{"queue_status", args{"queue": "work"}, signalbox.CodeValidation, "queue is not a known field"},
		{"chat_with_agent", args{"message": "m"}, signalbox.CodeValidation, "agent is missing"},
		{"chat_with_agent", args{"agent": "coder"}, signalbox.CodeValidation, "message is missing"},
		{"chat_with_agent", args{"agent": "coder/../../queue", "message": "m"}, signalbox.CodeNotFound, "is not the name of an agent"},
		{"chat_with_agent", args{"agent": "commands@local", "message": "m"}, signalbox.CodeNotFound, "commands@local"},
		{"chat_with_agent", hello(args{"overflow": "maybe"}), signalbox.CodeValidation, "overflow"},
		{"chat_with_agent", hello(args{"on_disconnect": "explode"}), signalbox.CodeValidation, "on_disconnect must be continue or cancel"},
		{"chat_with_agent", hello(args{"wait_seconds": 3601}), signalbox.CodeValidation, "wait_seconds must be 0 to 3600"},
		{"chat_with_agent", hello(args{"wait_seconds": -1}), signalbox.CodeValidation, "wait_seconds"},
		{"chat_with_agent", hello(args{"parallel": "yes"}), signalbox.CodeValidation, "parallel must be true or false"},
		{"chat_with_agent", hello(args{"message": "a\x00b"}), signalbox.CodeValidation, ""},
		{"chat_with_agent", hello(args{"timeout_seconds": -5}), signalbox.CodeValidation, "timeout_seconds"},
	} {
		res, err := c.CallTool(t.Context(), &mcp.CallToolParams{Name: bad.tool, Arguments: bad.args})
		if err != nil {
			t.Errorf("%s %.80v: %v", bad.tool, bad.args, err)
			continue
		}
		got := c.answers(bad.tool, res, nil, nil)
		if !got.IsError || !strings.HasPrefix(got.text, string(bad.code)) || !strings.Contains(got.text, bad.says) || len(got.text) > 2000 {
			t.Errorf("%s %.80v: %.300s, want %s … %s", bad.tool, bad.args, got.text, bad.code, bad.says)
		}
	}
	for _, e := range y.journal() {
		if e.Kind == signalbox.EventSubmit {
			t.Errorf("it was stored: %+v", e)
		}
	}
	// Prompts may contain any text.
	var task taskSaid
	c.call("submit_task", args{"prompt": "línea 1\n\t<b>2</b> & \"3\" \u2028 😀", "agent": "coder"}, &task)
	if run := y.agents["coder"].AwaitStart(1); run.Prompt != "línea 1\n\t<b>2</b> & \"3\" \u2028 😀" {
		t.Errorf("%q", run.Prompt)
	}
}

// A planning agent can cancel tasks that it submitted, with its own token.
func TestAgentCancelsItsOwnTasks(t *testing.T) {
	y := newFixture(t, options{token: apitest.Secret, agents: []agenttest.Options{{Name: "lead"}, {Name: "coder"}}})
	var root, child taskSaid
	y.connect(modernEra, auth(apitest.Secret)...).call("submit_task", args{"prompt": "p", "agent": "lead"}, &root)
	y.agents["lead"].AwaitStart(1)
	lead := y.connect(modernEra, auth(y.token(identity.NewToken{Name: "of-lead", Agent: "lead"}))...)
	lead.call("submit_task", args{"prompt": "help", "agent": "coder"}, &child)
	lead.call("cancel_task", args{"task_id": child.QueueID}, nil)
	if row := y.task(child.QueueID); !row.CancelRequested && row.State != signalbox.Cancelled {
		t.Errorf("%+v", row)
	}
	lead.fails("cancel_task", args{"task_id": root.QueueID}, signalbox.CodeForbidden)
}
