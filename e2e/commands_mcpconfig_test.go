package e2e_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/signalbox-ai/signalbox/api"
)

// mcpConfig is a mcp-config.json as the program of the seed async-task-queue
// uses it, without anything specific to Signalbox.
const mcpConfig = `{
  "maxParallelTasks": 2,
  "taskLogTailBytes": 262144,
  "tools": [
    {
      "name": "index_refresh",
      "title": "Refresh the index",
      "description": "Takes some minutes.",
      "command": "./tools/index-refresh.sh",
      "env": {"LOG_LEVEL": "warn", "WORKERS": 2},
      "cwd": "index",
      "timeout": 900000,
      "async": true,
      "inputSchema": {
        "type": "object",
        "properties": {"scope": {"type": "string", "enum": ["changed", "full"]}},
        "required": ["scope"]
      }
    },
    {
      "name": "docs_search",
      "description": "Search the documents",
      "command": "/bin/sh",
      "args": ["tools/docs-search.sh", "--limit", 20, "", null],
      "timeoutMs": 60000,
      "inputSchema": {"query": {"type": "string", "minLength": 1}, "limit": {"type": "number", "optional": true}}
    },
    {"name": "slow", "description": "Is given up after 300 ms", "command": "/bin/sleep", "args": ["1000"], "async": true, "timeout": 300},
    {"name": "patient", "description": "Is not", "command": "/bin/sleep", "args": ["1000"], "async": true, "timeout": 900000},
    {"name": "in_line", "description": "Two at a time", "command": "LINE", "env": {"DIR": "NOTES", "PATH": "/usr/bin:/bin"}, "async": true,
      "inputSchema": {"n": "number"}},
    {"name": "model_pull", "description": "Of the program's own", "providerExecution": {"kind": "models"}, "inputSchema": {"model": "string"}}
  ],
  "resources": [{"name": "status", "uri": "agent://status", "command": "node", "args": ["tools/status.mjs"]}]
}`

// mcpConfigBox runs a director with that file, with additional environment
// variables.
func mcpConfigBox(t *testing.T, vars ...string) *commandBox {
	b := commandBoxIn(newBox(t), autoLimits, object{})
	folder := filepath.Join(b.root, "agent")
	text := strings.NewReplacer("LINE", filepath.Join(b.programs, "line"), "NOTES", b.dir).Replace(mcpConfig)
	file := b.file(filepath.Join(folder, "mcp-config.json"), text, 0o600)
	b.file(filepath.Join(folder, "tools", "index-refresh.sh"), "#!/bin/sh\nread line\necho \"$line\"\necho \"$LOG_LEVEL $WORKERS $HOME\"\necho \"${PWD##*/}\"\necho careful >&2\n", 0o700)
	b.file(filepath.Join(folder, "index", "keep"), "", 0o600)
	b.file(filepath.Join(folder, "tools", "docs-search.sh"), "read line\necho \"$# $*: $line\"\n", 0o600)
	for i, arg := range b.args {
		if arg == "--tools" {
			b.args[i+1] = file
		}
	}
	for i := 0; i < len(vars); i += 2 {
		b.vars[vars[i]] = vars[i+1]
	}
	b.start()
	return b
}

// session opens an MCP session of the seed's protocol version, as curl would.
// The returned function makes calls and returns their results.
func (b *commandBox) session() func(tool, arguments string) json.RawMessage {
	b.t.Helper()
	header := http.Header{"Accept": {"application/json, text/event-stream"}}
	id := 0
	send := func(method, params string) json.RawMessage {
		b.t.Helper()
		id++
		resp, text := b.ask(http.MethodPost, "/mcp", fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":%q,"params":%s}`, id, method, params), header)
		if session := resp.Header.Get("Mcp-Session-Id"); session != "" {
			header["Mcp-Session-Id"] = []string{session}
		}
		for line := range strings.Lines(text) {
			if data, ok := strings.CutPrefix(line, "data: "); ok {
				text = data
			}
		}
		answer := parse[struct {
			ID     int
			Result json.RawMessage
		}](b.t, text)
		if answer.ID != id || answer.Result == nil {
			b.t.Fatalf("%s: %s %s", method, resp.Status, text)
		}
		return answer.Result
	}
	send("initialize", `{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"curl","version":"8"}}`)
	header["Mcp-Protocol-Version"] = []string{legacyEra}
	b.ask(http.MethodPost, "/mcp", `{"jsonrpc":"2.0","method":"notifications/initialized"}`, header)
	return func(tool, arguments string) json.RawMessage {
		b.t.Helper()
		return send("tools/call", fmt.Sprintf(`{"name":%q,"arguments":%s}`, tool, arguments))
	}
}

type mcpAnswer struct {
	Content  []struct{ Type, Text string }
	IsError  bool
	Metadata map[string]any
}

var queuedForm = regexp.MustCompile(`^Task '([a-z_]+)' queued with id (queue-[0-9a-z]+)`)

// queued calls an async tool and returns the ID of its task.
func (b *commandBox) queued(call func(tool, arguments string) json.RawMessage, tool, arguments string) string {
	b.t.Helper()
	answer := parse[mcpAnswer](b.t, string(call(tool, arguments)))
	if len(answer.Content) == 0 || answer.IsError {
		b.t.Fatalf("%+v", answer)
	}
	m := queuedForm.FindStringSubmatch(answer.Content[0].Text)
	if m == nil || m[1] != tool || answer.Metadata["taskId"] != m[2] || answer.Metadata["toolName"] != tool || answer.Metadata["status"] == nil {
		b.t.Fatalf("%+v", answer)
	}
	return m[2]
}

// taskStatus polls as in the seed until a task has ended.
func (b *commandBox) taskStatus(id string) api.ToolTask {
	b.t.Helper()
	var task api.ToolTask
	b.until("the end of "+id, func() bool {
		task = parse[api.TaskStatus](b.t, b.get("/getTaskStatus?taskId="+id)).Task
		return task.Status != "pending" && task.Status != "running"
	})
	return task
}

// The flow of the seed async-task-queue with its own file, from tools/call to
// the polled result.
func TestSeedFlowOfAMCPConfig(t *testing.T) {
	b := mcpConfigBox(t, "AGENT_NAME", "indexer")
	call := b.session()
	id := b.queued(call, "index_refresh", `{"scope": "full"}`)
	task := b.taskStatus(id)
	line := `{"tool":"index_refresh","input":{"scope":"full"},"metadata":{},"taskId":"` + id + `"}`
	want := `[{"type":"text","text":` + string(mustJSON(t, line+"\nwarn 2 \nindex\n")) + `},{"type":"text","text":"stderr:\ncareful\n"}]`
	if task.Status != "completed" || task.ID != id || task.ToolName != "index_refresh" || task.Error != nil || task.Result == nil || string(task.Result.Content) != want {
		t.Errorf("%+v %s\nwant %s", task, said(task), want)
	}
	if got := string(task.Result.Metadata); got != `{"agent":"indexer"}` {
		t.Errorf("metadata %s", got)
	}
	if _, err := time.Parse(time.RFC3339Nano, task.CreatedAt.Format(time.RFC3339Nano)); err != nil || task.UpdatedAt.Before(task.CreatedAt) {
		t.Errorf("%v %v", task.CreatedAt, task.UpdatedAt)
	}
	if answer := parse[mcpAnswer](t, string(call("docs_search", `{"query": "boxes"}`))); answer.IsError || answer.Content[0].Text != "2 --limit 20: {\"tool\":\"docs_search\",\"input\":{\"query\":\"boxes\"},\"metadata\":{}}\n" {
		t.Errorf("a tool that is not async: %+v", answer)
	}
	if answer := parse[mcpAnswer](t, string(call("index_refresh", `{"scope": "some"}`))); !answer.IsError {
		t.Errorf("input that does not fit: %+v", answer)
	}
	if task := b.taskStatus(b.queued(call, "slow", `{}`)); task.Status != "failed" || failure(task) != "Task timed out after 300ms" || task.Result != nil {
		t.Errorf("%+v", task)
	}
	for _, c := range []struct{ tool, ms string }{{"patient", "350"}, {"slow", "200"}} {
		_, text := b.ask(http.MethodPost, "/api/tools/"+c.tool+"/tasks", `{"arguments": {}, "timeout_ms": `+c.ms+`}`, nil)
		if task := b.taskStatus(parse[api.ToolTask](t, text).ID); failure(task) != "Task timed out after "+c.ms+"ms" {
			t.Errorf("%+v", task)
		}
	}
	if resp, text := b.ask(http.MethodGet, "/getTaskStatus?taskId=queue-unknown", "", nil); resp.StatusCode != http.StatusNotFound {
		t.Errorf("%s %s", resp.Status, text)
	}
	if resp, text := b.ask(http.MethodGet, "/getTaskStatus", "", nil); resp.StatusCode != http.StatusBadRequest {
		t.Errorf("%s %s", resp.Status, text)
	}
}

// maxParallelTasks is enforced: never more than two run at the same time, and
// they begin in the order of submission.
func TestMaxParallelTasks(t *testing.T) {
	const tasks, most = 12, 2
	b := mcpConfigBox(t)
	call := b.session()
	var ids []string
	for n := range tasks {
		ids = append(ids, b.queued(call, "in_line", fmt.Sprintf(`{"n": %d}`, n)))
	}
	for n, id := range ids {
		task := b.taskStatus(id)
		if task.Status != "completed" || said(task) != fmt.Sprintf("did %d\n", n) || string(task.Result.Metadata) != `{"agent":"in_line"}` {
			t.Errorf("%+v: %s", task, said(task))
		}
	}
	side, widest, next := 0, 0, 0
	began := make([]bool, tasks)
	for line := range strings.Lines(b.read(filepath.Join(b.dir, "line"))) {
		var n int
		if _, err := fmt.Sscanf(line, "begin %d", &n); err == nil {
			// A task may have its slot before its program reports; all earlier ones have ended or have a
			// slot too.
			silent := 0
			for _, b := range began[:n] {
				if !b {
					silent++
				}
			}
			if silent > most-1 {
				t.Errorf("task %d began as number %d, before %d of those in front of it", n, next, silent)
			}
			began[n] = true
			side++
			next++
			widest = max(widest, side)
			continue
		}
		side--
	}
	if widest != most || next != tasks {
		t.Errorf("%d at a time, want %d; %d began", widest, most, next)
	}
}

func mustJSON(t *testing.T, v any) []byte {
	t.Helper()
	data, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return data
}
