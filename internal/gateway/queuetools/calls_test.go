package queuetools_test

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"github.com/signalbox-ai/signalbox/internal/testkit"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/api"
	"github.com/signalbox-ai/signalbox/internal/engine"
	"github.com/signalbox-ai/signalbox/internal/execution/push/agenttest"
	"github.com/signalbox-ai/signalbox/internal/gateway"
	"github.com/signalbox-ai/signalbox/internal/httpapi/apitest"
	"github.com/signalbox-ai/signalbox/internal/identity"
)

// The tools follow a tool call that became a task just as they follow a
// prompt, and return its answer unchanged.
func TestQueueToolsFollowToolCalls(t *testing.T) {
	tasks := apitest.NewToolTasks()
	y := newFixture(t, options{token: apitest.Secret, tasks: tasks, agents: []agenttest.Options{}})
	tasks.Store, tasks.Engine = y.store, y.engine
	// Only the creator sees it, although it has no scope but tool.
	scopes := []signalbox.Scope{signalbox.ScopeTool}
	token := y.token(identity.NewToken{Name: "builder", Scopes: scopes})
	who, err := y.id.FromToken(token)
	if err != nil {
		t.Fatal(err)
	}
	c := y.connect(modernEra, auth(token)...)
	stranger := y.connect(modernEra, auth(y.token(identity.NewToken{Name: "stranger", Scopes: scopes}))...)
	admin := y.connect(legacyEra, auth(apitest.Secret)...)
	submit := func() string {
		t.Helper()
		made, err := tasks.Submit(t.Context(), gateway.TaskCall{
			Call: gateway.Call{Tool: "build", Arguments: json.RawMessage(`{}`), Caller: gateway.Caller{Who: who}}, Source: signalbox.SourceAPI,
		})
		if err != nil {
			t.Fatal(err)
		}
		return made.Task.ID
	}
	first, second := submit(), submit()
	var waits taskSaid
	if text := c.call("task_status", args{"task_id": second}, &waits).text; waits.State != "pending" || waits.Tool != "build" || waits.Position != 2 || waits.WaitsFor == "" || !strings.HasPrefix(text, second+" (build) is pending, position 2") {
		t.Errorf("%+v %s", waits, text)
	}
	if text := admin.call("queue_status", nil, nil).text; !strings.Contains(text, "commands: 2 waiting") || !strings.Contains(text, "Of tool calls that are tasks 2 wait and 0 run.") {
		t.Error(text)
	}
	for _, tool := range []string{"task_status", "cancel_task", "task_output"} {
		stranger.fails(tool, args{"task_id": first}, signalbox.CodeForbidden)
	}
	var gone taskSaid
	c.call("cancel_task", args{"task_id": second}, &gone)
	if gone.State != "cancelled" {
		t.Errorf("%+v", gone)
	}
	c.fails("cancel_task", args{"task_id": second}, signalbox.CodeAlreadyEnded)

	row := signalbox.Agent{
		Name: signalbox.ExecutorName(signalbox.ExecutorCommands, signalbox.DefaultInstance), Kind: signalbox.ExecutorCommands,
		Slots: 1, Fencing: true, Source: signalbox.AgentInternal,
	}
	if err := y.store.PutAgent(t.Context(), row, signalbox.Entry{}); err != nil {
		t.Fatal(err)
	}
	claim, found, err := y.engine.Claim(t.Context(), row, 0)
	if err != nil || !found {
		t.Fatal(found, err)
	}
	run, err := y.engine.Accept(t.Context(), claim.Task, "", "")
	if err != nil {
		t.Fatal(err)
	}
	ended := c.begin(t.Context(), "task_status", args{"task_id": first, "wait_seconds": 60})
	tasks.Mu.Lock()
	tasks.Results[first] = gateway.Result{
		Content:    json.RawMessage(`[{"type":"text","text":"built 3 files"},{"type":"text","text":"stderr:\n1 warning"}]`),
		Structured: json.RawMessage(`{"files":3}`), Metadata: json.RawMessage(`{"agent":"build","truncated":true}`),
	}
	tasks.Mu.Unlock()
	if _, err := y.engine.Finish(t.Context(), run, engine.Outcome{Reason: signalbox.ReasonCompleted, Result: &signalbox.Result{Output: "built 3 files", Tail: "building\nbuilt 3 files"}}); err != nil {
		t.Fatal(err)
	}
	var end struct {
		taskSaid
		Structured map[string]any `json:"structured_result"`
		Truncated  bool           `json:"truncated"`
	}
	got := testkit.Receive(t, "the end", ended)(&end)
	if end.State != "completed" || !end.Ended || *end.Result != "built 3 files\nstderr:\n1 warning" || end.Structured["files"] != 3.0 || !strings.HasSuffix(got.text, "built 3 files\nstderr:\n1 warning") {
		t.Errorf("%+v %s", end, got.text)
	}
	if !end.Truncated || !strings.Contains(got.text, "Its result is cut") {
		t.Errorf("a truncated result is reported as %+v: %s", end, got.text)
	}
	var out outputSaid
	c.call("task_output", args{"task_id": first}, &out)
	if out.Text != "building\nbuilt 3 files" || !out.Done {
		t.Errorf("%+v", out)
	}
	// list_agents leaves out the director's own executor.
	if text := admin.call("list_agents", nil, nil).text; !strings.HasPrefix(text, "There are no agents") {
		t.Error(text)
	}
}

// The queue's tools, and the seed's path, accept the ID that a task had in the
// queue from which it was imported.
func TestQueueToolsKnowOldIDs(t *testing.T) {
	tasks := apitest.NewToolTasks()
	y := newFixture(t, options{tasks: tasks, agents: []agenttest.Options{}})
	tasks.Store, tasks.Engine = y.store, y.engine
	restore := func(kind, old, tool string) string {
		id, err := signalbox.NewID(y.engine.Now(), strings.NewReader(kind+"0123456789"))
		if err != nil {
			t.Fatal(err)
		}
		task := signalbox.Task{
			ID: id, State: signalbox.Pending, Queue: "pool:none", CreatedAt: y.engine.Now(), EnqueuedAt: y.engine.Now(),
			IdempotencyKey: signalbox.ImportKey(kind, old), IdempotencyHash: "import", Source: signalbox.SourceAPI,
		}
		if tool != "" {
			task.Mode, task.Tool, task.Queue = signalbox.ModeTool, tool, signalbox.QueueCommands
		}
		if _, err := y.engine.Restore(t.Context(), engine.Transfer{Task: task, Request: signalbox.Request{Prompt: "p"}}, false); err != nil {
			t.Fatal(err)
		}
		return id
	}
	prompt, call := restore(signalbox.ImportWorkQueue, "queue-abc12345", ""), restore(signalbox.ImportAsyncTaskQueue, "task_17_x", "draw")
	c := y.connect(modernEra)
	for old, id := range map[string]string{"queue-abc12345": prompt, "task_17_x": call} {
		var got struct {
			QueueID string `json:"queue_id"`
			State   string
		}
		if c.call("task_status", args{"task_id": old}, &got); got.QueueID != id || got.State != "pending" {
			t.Errorf("%s is %+v, want %s", old, got, id)
		}
		if c.call("cancel_task", args{"task_id": old}, &got); got.QueueID != id || got.State != "cancelled" {
			t.Errorf("%s is %+v, want %s", old, got, id)
		}
	}
	resp, err := http.Get(y.url + "/getTaskStatus?taskId=task_17_x")
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	var status api.TaskStatus
	if err := json.NewDecoder(resp.Body).Decode(&status); err != nil || status.Task.ID != call {
		t.Errorf("%+v, %v", status, err)
	}
}

// Content of a tool that is not text passes through unchanged.
func TestQueueToolsPassOnNonTextContent(t *testing.T) {
	tasks := apitest.NewToolTasks()
	y := newFixture(t, options{tasks: tasks, agents: []agenttest.Options{}})
	tasks.Store, tasks.Engine = y.store, y.engine
	made, err := tasks.Submit(t.Context(), gateway.TaskCall{Call: gateway.Call{Tool: "draw", Arguments: json.RawMessage(`{}`)}, Source: signalbox.SourceAPI})
	if err != nil {
		t.Fatal(err)
	}
	row := signalbox.Agent{Name: "commands@local", Kind: "commands", Slots: 1, Source: signalbox.AgentInternal}
	if err := y.store.PutAgent(t.Context(), row, signalbox.Entry{}); err != nil {
		t.Fatal(err)
	}
	claim, _, err := y.engine.Claim(t.Context(), row, 0)
	if err != nil {
		t.Fatal(err)
	}
	run, err := y.engine.Accept(t.Context(), claim.Task, "", "")
	if err != nil {
		t.Fatal(err)
	}
	tasks.Mu.Lock()
	tasks.Results[made.Task.ID] = gateway.Result{Content: json.RawMessage(`[{"type":"image","data":"AAAA","mimeType":"image/png"}]`)}
	tasks.Mu.Unlock()
	if _, err := y.engine.Finish(t.Context(), run, engine.Outcome{Reason: signalbox.ReasonCompleted, Result: &signalbox.Result{}}); err != nil {
		t.Fatal(err)
	}
	res, err := y.connect(modernEra).CallTool(t.Context(), &mcp.CallToolParams{Name: "task_status", Arguments: args{"task_id": made.Task.ID}})
	if err != nil || len(res.Content) != 2 {
		t.Fatalf("%+v, %v", res, err)
	}
	if image, ok := res.Content[1].(*mcp.ImageContent); !ok || image.MIMEType != "image/png" || string(image.Data) != "\x00\x00\x00" {
		t.Errorf("%+v", res.Content[1])
	}
}
