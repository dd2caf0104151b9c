package endpoint_test

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/internal/gateway"
	"github.com/signalbox-ai/signalbox/internal/gateway/endpoint"
	"github.com/signalbox-ai/signalbox/internal/testkit"
)

// An async tool is answered with a task; its creator then fetches the result.
func TestAsyncToolBecomesTask(t *testing.T) {
	r, b := newTaskFixture(t, endpoint.Options{})
	got := r.sendModern("tools/call", `"name":"s__job","arguments":{"n":1}`, declaring)
	made := r.read(got).Result
	if made.Type != "task" || !signalbox.ValidID(made.TaskID) || made.Status != "working" || made.Poll != 750 || made.TTL == nil || *made.TTL != 3600000 ||
		made.Created != "2026-01-02T03:04:05.006Z" || made.Updated != "2026-01-02T03:04:06.000Z" {
		t.Errorf("%s", got.body)
	}
	for _, foreign := range []string{`"content"`, `"result":{"content`, `"task":`, `"requestState"`, `"ttl":`, `"error"`} {
		if strings.Contains(got.body, foreign) {
			t.Errorf("the answer has %s: %s", foreign, got.body)
		}
	}
	testkit.Receive(t, "the tool runs", r.script.came) // the creator's disconnect has not ended it
	if w := r.read(r.about("tasks/get", made.TaskID)).Result; w.Type != "complete" || w.Status != "working" || w.Result != nil {
		t.Errorf("%+v", w)
	}
	r.script.goOn <- struct{}{}
	testkit.Wait(t, "it is completed", func() bool { return r.read(r.about("tasks/get", made.TaskID)).Result.Status == "completed" })
	w := r.read(r.about("tasks/get", made.TaskID)).Result
	if string(w.Result) != `{"resultType":"complete","content":[{"type":"text","text":"held"}]}` || w.Poll != 0 || w.Error != nil {
		t.Errorf("%+v", w)
	}
	if c := testkit.Receive(t, "the call", b.calls); string(c.Arguments) != `{"n":1}` || strings.Contains(string(c.Meta), "clientCapabilities") {
		t.Errorf("%+v", c)
	}
	// Cancelling an ended task is not an error and has no effect.
	for _, method := range []string{"tasks/cancel", "tasks/update"} {
		got := r.about(method, made.TaskID)
		if got.status != 200 || !strings.Contains(got.body, `"resultType":"complete"`) || strings.Contains(got.body, "taskId") {
			t.Errorf("%s: %+v", method, got)
		}
	}
}

// All other clients get an answer at once, with the seed's text.
func TestAsyncToolWithoutTasksExtension(t *testing.T) {
	inEachEra(t, func(t *testing.T, version string) {
		r, b := newTaskFixture(t, endpoint.Options{AgentName: "worker"})
		var w wire
		if err := json.Unmarshal([]byte(r.ask(version, "tools/call", `"name":"s__job"`)), &w); err != nil {
			t.Fatal(err)
		}
		id := b.only(t)
		if string(w.Result.Content) != `[{"type":"text","text":"Task 's__job' queued with id `+id+`"}]` || w.Result.IsError || w.Result.TaskID != "" {
			t.Errorf("%+v", w.Result)
		}
		want := `{"agent":"worker","taskId":"` + id + `","toolName":"s__job","status":"running","createdAt":"2026-01-02T03:04:05.006Z","updatedAt":"2026-01-02T03:04:06.000Z"}`
		if string(w.Result.Metadata) != want {
			t.Errorf("%s", w.Result.Metadata)
		}
		testkit.Receive(t, "the tool runs", r.script.came)
		// The tool's own metadata passes through as well.
		if got := r.ask(version, "tools/call", `"name":"s__quick"`); !strings.Contains(got, `"metadata":{"agent":"s__quick"}`) {
			t.Error(got)
		}
	})
}

// Only its creator sees a task. For another caller it looks like a task that
// never existed.
func TestTaskIsVisibleToItsCreatorOnly(t *testing.T) {
	r, _ := newTaskFixture(t, endpoint.Options{})
	anna, ben := []string{principalHeader, "user:anna"}, []string{principalHeader, "user:ben"}
	id := r.read(r.sendModern("tools/call", `"name":"s__job"`, declaring, anna...)).Result.TaskID
	never := "queue-" + strings.Repeat("0", 26)
	for _, method := range []string{"tasks/get", "tasks/update", "tasks/cancel"} {
		for _, of := range [][]string{ben, nil} {
			his, none := r.about(method, id, of...), r.about(method, never, of...)
			if his.status != 400 || r.read(his).Error.Code != -32602 || strings.ReplaceAll(his.body, id, never) != none.body {
				t.Errorf("%s: %+v, and for an unknown task %+v", method, his, none)
			}
		}
		for _, odd := range []string{"", "x", "../etc", strings.Repeat("q", 5000)} {
			if w := r.read(r.about(method, odd, anna...)); w.Error == nil || w.Error.Code != -32602 && !(odd == "" && w.Error.Code == -32020) {
				t.Errorf("%s of %.10q: %+v", method, odd, w)
			}
		}
	}
	if w := r.read(r.about("tasks/get", id, anna...)).Result; w.Status != "working" {
		t.Errorf("%+v", w)
	}
	r.about("tasks/cancel", id, anna...)
	if w := r.read(r.about("tasks/get", id, anna...)).Result; w.Status != "cancelled" || w.Message != "cancelled by a local caller" || w.Result != nil {
		t.Errorf("%+v", w)
	}
}

// A client that did not declare tasks is told to declare them. Older versions
// have no such methods, nor does an endpoint without tasks.
func TestTasksNeedDeclaration(t *testing.T) {
	r, b := newTaskFixture(t, endpoint.Options{})
	r.sendModern("tools/call", `"name":"s__job"`, declaring)
	id := b.only(t)
	for _, method := range []string{"tasks/get", "tasks/update", "tasks/cancel"} {
		undeclared := func(value string) string {
			return `,"io.modelcontextprotocol/clientCapabilities":{"extensions":{"io.modelcontextprotocol/tasks":` + value + `}}`
		}
		for _, meta := range []string{"", undeclared("null"), undeclared("false"), undeclared("[]"), `,"io.modelcontextprotocol/clientCapabilities":{"tasks":{}}`} {
			got := r.sendModern(method, `"taskId":"`+id+`"`, meta, "Mcp-Name", id)
			if e := r.read(got).Error; got.status != 400 || e == nil || e.Code != -32021 || string(e.Data) != `{"requiredCapabilities":{"extensions":{"io.modelcontextprotocol/tasks":{}}}}` {
				t.Errorf("%s with %s: %+v", method, meta, got)
			}
		}
		old := r.send("POST", `{"jsonrpc":"2.0","id":7,"method":"`+method+`","params":{"taskId":"`+id+`"}}`, "Mcp-Session-Id", r.open())
		if e := r.read(old).Error; e == nil || e.Code != -32601 {
			t.Errorf("%s in the older protocol: %+v", method, old)
		}
	}
	for _, method := range []string{"tasks/list", "tasks/result"} {
		if got := r.about(method, id); got.status != 404 || r.read(got).Error.Code != -32601 {
			t.Errorf("%s: %+v", method, got)
		}
	}
	without := newFixture(t, endpoint.Options{})
	if got := without.about("tasks/get", id); got.status != 404 {
		t.Errorf("%+v", got)
	}
	advertised := `"extensions":{"io.modelcontextprotocol/tasks":{}}`
	for of, got := range map[string]string{
		"with tasks": r.sendModern("server/discover", "", "").body, "without": without.sendModern("server/discover", "", "").body, "of the older protocol": r.send("POST", initialize).body,
	} {
		if !strings.Contains(got, `"capabilities"`) || strings.Contains(got, advertised) != (of == "with tasks") {
			t.Errorf("the one %s: %s", of, got)
		}
	}
}

// Proxies route by the headers, so the headers must match the body.
func TestTaskHeaders(t *testing.T) {
	r, b := newTaskFixture(t, endpoint.Options{})
	r.sendModern("tools/call", `"name":"s__job"`, declaring)
	id := b.only(t)
	for name, headers := range map[string][]string{
		"of another task": {"Mcp-Name", "queue-" + strings.Repeat("1", 26)}, "none": {"Mcp-Name", ""}, "another method": {"Mcp-Method", "tasks/cancel"},
		"a method of tools": {"Mcp-Method", "tools/call"},
	} {
		got := r.about("tasks/get", id, headers...)
		if e := r.read(got).Error; got.status != http.StatusBadRequest || e == nil || e.Code != -32020 || !strings.Contains(got.body, `"id":7`) {
			t.Errorf("%s: %+v", name, got)
		}
	}
	if got := r.about("tasks/get", id); got.status != 200 {
		t.Errorf("%+v", got)
	}
}

// The states of a task, as the protocol names them.
func TestTaskStates(t *testing.T) {
	r, b := newTaskFixture(t, endpoint.Options{})
	r.sendModern("tools/call", `"name":"s__job"`, declaring)
	id := b.only(t)
	words := &gateway.Result{Content: json.RawMessage(`[{"type":"text","text":"no such file"}]`), IsError: true, Metadata: json.RawMessage(`{"agent":"a"}`)}
	for _, c := range []struct {
		state  signalbox.State
		reason signalbox.Reason
		with   gateway.ToolTask
		want   string // status and message
		result string
		code   int64
	}{
		{state: signalbox.Pending, with: gateway.ToolTask{Position: 3, Wait: "waits"}, want: "working queued, position 3"},
		{state: signalbox.Dispatching, with: gateway.ToolTask{Wait: "waits for a slot"}, want: "working waits for a slot"},
		{state: signalbox.Dispatching, want: "working queued"},
		{state: signalbox.Working, want: "working "},
		{state: signalbox.Cancelling, want: "working being cancelled"},
		{state: signalbox.Completed, reason: signalbox.ReasonCompleted, with: gateway.ToolTask{Result: &gateway.Result{Content: json.RawMessage(`[]`)}}, want: "completed ", result: `{"resultType":"complete","content":[]}`},
		{state: signalbox.Failed, reason: signalbox.ReasonExitNonzero, with: gateway.ToolTask{Result: words}, want: "completed it says so", result: `{"resultType":"complete","content":[{"type":"text","text":"no such file"}],"isError":true,"metadata":{"agent":"a"}}`},
		{state: signalbox.Failed, reason: signalbox.ReasonAgentError, want: "completed it says so", result: `{"resultType":"complete","content":[{"text":"it says so","type":"text"}],"isError":true}`},
		{state: signalbox.Failed, reason: signalbox.ReasonAgentError, with: gateway.ToolTask{Error: &gateway.ProtocolError{Code: -32042, Message: "it says so"}}, want: "failed it says so", code: -32042},
		{state: signalbox.Failed, reason: signalbox.ReasonInterrupted, want: "failed it says so", code: -32603},
		{state: signalbox.Failed, reason: signalbox.ReasonLost, want: "failed it says so", code: -32603},
		{state: signalbox.Failed, reason: signalbox.ReasonDispatchFailed, want: "failed it says so", code: -32603},
		{state: signalbox.Timeout, reason: signalbox.ReasonRunTimeout, want: "failed it says so", code: -32603},
		{state: signalbox.Cancelled, reason: signalbox.ReasonCancelled, want: "cancelled it says so"},
	} {
		b.set(id, func(t *gateway.ToolTask) {
			t.Task.State, t.Task.Reason, t.Task.Message = c.state, c.reason, "it says so"
			t.Position, t.Wait, t.Result, t.Error, t.TTL = c.with.Position, c.with.Wait, c.with.Result, c.with.Error, 0
		})
		got := r.about("tasks/get", id)
		w := r.read(got).Result
		if w.Status+" "+w.Message != c.want || string(w.Result) != c.result || w.Type != "complete" || !strings.Contains(got.body, `"ttlMs":null`) {
			t.Errorf("%s, %s: %s", c.state, c.reason, got.body)
		}
		if (w.Error != nil) != (c.code != 0) || w.Error != nil && (w.Error.Code != c.code || w.Error.Message != "it says so") {
			t.Errorf("%s, %s: the error is %+v", c.state, c.reason, w.Error)
		}
	}
}

// A call that has waited for longer than its grace becomes a task if the client
// declared tasks. Another client's call keeps waiting and reports its position.
func TestWaitingCallBecomesTask(t *testing.T) {
	r, b := newTaskFixture(t, endpoint.Options{TaskAfter: 10 * time.Millisecond})
	holder := r.connect(modern)
	held := holder.call(t.Context(), "s__hold", nil)
	testkit.Receive(t, "the queue is held", r.script.came)
	plain := r.connect(modern)
	waiting := plain.call(t.Context(), "s__hold", mcp.Meta{"progressToken": "p"})
	testkit.Receive(t, "it is told its place", plain.progress)
	made := r.read(r.sendModern("tools/call", `"name":"s__hold"`, declaring))
	if made.Result.Type != "task" {
		t.Fatalf("%+v", made)
	}
	if q := r.queue("one"); q.Depth != 2 {
		t.Errorf("%+v", q)
	}
	for range 2 {
		r.script.goOn <- struct{}{}
		testkit.Receive(t, "the next one runs", r.script.came)
	}
	if err := testkit.Receive(t, "the first ends", held); err != nil {
		t.Error(err)
	}
	if err := testkit.Receive(t, "the second ends", waiting); err != nil {
		t.Error(err)
	}
	r.script.goOn <- struct{}{}
	testkit.Wait(t, "the task is completed", func() bool {
		return r.read(r.about("tasks/get", b.only(t))).Result.Status == "completed"
	})
	// A call that waits for less than the grace is answered as usual.
	r, _ = newTaskFixture(t, endpoint.Options{TaskAfter: time.Minute})
	r.script.goOn <- struct{}{}
	if w := r.read(r.sendModern("tools/call", `"name":"s__quick"`, declaring)).Result; w.Type != "complete" || string(w.Content) != `[{"type":"text","text":"quick"}]` {
		t.Errorf("%+v", w)
	}
}

// A client that disconnects before the answer cancels the call, even if it is
// already a task: nobody knows the task's ID.
func TestDisconnectBeforeTaskIDCancels(t *testing.T) {
	for name, meta := range map[string]mcp.Meta{
		"declared": {"io.modelcontextprotocol/clientCapabilities": map[string]any{"extensions": map[string]any{"io.modelcontextprotocol/tasks": map[string]any{}}}},
		"not":      nil,
	} {
		t.Run(name, func(t *testing.T) {
			r, b := newTaskFixture(t, endpoint.Options{})
			b.slow = true
			c := r.connect(modern)
			done := c.call(t.Context(), "s__job", meta)
			testkit.Receive(t, "it is stored", b.calls)
			c.cut()
			if err := testkit.Receive(t, "the call ends", done); err == nil {
				t.Error("it was answered")
			}
			testkit.Receive(t, "the task is cancelled", b.ended)
		})
	}
}

func TestStoreErrorIsReported(t *testing.T) {
	inEachEra(t, func(t *testing.T, version string) {
		r, b := newTaskFixture(t, endpoint.Options{})
		b.full = true
		if got := r.ask(version, "tools/call", `"name":"s__job"`); !strings.Contains(got, `"isError":true`) || !strings.Contains(got, "queue_full: 10 tasks wait already") {
			t.Error(got)
		}
	})
	r, b := newTaskFixture(t, endpoint.Options{})
	b.full = true
	if w := r.read(r.sendModern("tools/call", `"name":"s__job"`, declaring)).Result; !w.IsError || w.Type != "complete" {
		t.Errorf("%+v", w)
	}
	if w := r.read(r.sendModern("tools/call", `"name":"s__nothing"`, declaring)); w.Error == nil || w.Error.Code != -32602 {
		t.Errorf("%+v", w)
	}
}
