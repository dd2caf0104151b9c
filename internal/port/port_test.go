package port_test

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/api"
	"github.com/signalbox-ai/signalbox/internal/port"
)

// all reads a source; bad are the invalid records.
func all(t *testing.T, source string) (tasks []api.ExportedTask, bad []string, err error) {
	t.Helper()
	from, err := port.Open(source)
	if err != nil {
		return nil, nil, err
	}
	err = from.Read(context.Background(), port.Taker{Task: func(x api.ExportedTask) error {
		tasks = append(tasks, x)
		return nil
	}, Usage: func([]api.ExportedUsage) error { return nil }, Bad: func(where, why string) { bad = append(bad, filepath.Base(where)+": "+why) }})
	return tasks, bad, err
}

func write(t *testing.T, dir, name, text string) string {
	t.Helper()
	path := filepath.Join(dir, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func requestOf(t *testing.T, x *api.ExportedTask) signalbox.Request {
	t.Helper()
	var r signalbox.Request
	if err := json.Unmarshal(x.Request, &r); err != nil {
		t.Fatal(err)
	}
	return r
}

func TestSeedWorkQueueFolders(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, "pending/queue-abc12345.json", `{
  "queue_id": "queue-abc12345", "state": "pending", "created_at": "2025-01-17T10:00:00Z", "prompt": "Perform nightly maintenance...",
  "model": "sonnet", "timeout_seconds": 1800, "source": "scheduler", "source_job": "nightly-maintenance", "attempts": 0, "env": {"KEY": "v"}}`)
	write(t, dir, "pending/queue-def67890.json", `{"queue_id": "queue-def67890", "created_at": "2025-01-17T09:00:00Z", "prompt": "first", "source": "web", "project": {"path": "/srv/app", "prompt": "You work on the app."}}`)
	running := `{"queue_id": "queue-xyz11111", "state": "working", "created_at": "2025-01-17T08:00:00Z", "prompt": "runs", "source": "cli",
  "task_id": "task-1", "agent_url": "http://127.0.0.1:9000", "dispatched_at": "2025-01-17T08:01:00Z", "attempts": 1}`
	write(t, dir, "dispatched/queue-xyz11111.json", running)
	write(t, dir, "pending/queue-xyz11111.json", running) // it was being moved when the old director ended
	write(t, dir, "pending/broken.json", `{"queue_id": "x`)
	write(t, dir, "pending/empty.json", `{}`)
	tasks, bad, err := all(t, dir)
	if err != nil {
		t.Fatal(err)
	}
	if len(tasks) != 3 || len(bad) != 2 {
		t.Fatalf("%d tasks and %d bad records: %v", len(tasks), len(bad), bad)
	}
	if tasks[0].State != "working" || tasks[0].TaskID != "task-1" || tasks[0].Attempts != 1 {
		t.Errorf("what runs: %+v", tasks[0])
	}
	if got := []string{tasks[0].Preview, tasks[1].Preview, tasks[2].Preview}; !strings.HasPrefix(got[1], "You work on the app.") || !strings.HasPrefix(got[2], "Perform") {
		t.Errorf("order: %q, want that of created_at", got)
	}
	if r := requestOf(t, &tasks[1]); r.Prompt != "You work on the app.\n\nfirst" || r.Project == nil || r.Project.Path != "/srv/app" {
		t.Errorf("a project with a prompt: %+v", r)
	}
	if old := port.OldID(tasks[1]); old != "queue-def67890" {
		t.Errorf("the old id is %q", old)
	}
	last := tasks[2]
	if r := requestOf(t, &last); r.Model != "sonnet" || r.TimeoutSeconds != 1800 || !r.HadEnv {
		t.Errorf("request: %+v", r)
	}
	if last.Source != "scheduler" || last.SourceJob != "nightly-maintenance" || last.Env["KEY"] != "v" || last.State != "pending" {
		t.Errorf("task: %+v", last)
	}
	again, _, _ := all(t, dir)
	for i := range tasks {
		if !signalbox.ValidID(tasks[i].QueueID) || tasks[i].QueueID != again[i].QueueID {
			t.Errorf("id %q, and %q when it is read again", tasks[i].QueueID, again[i].QueueID)
		}
	}
}

func TestSeedTasksQueueFile(t *testing.T) {
	path := write(t, t.TempDir(), ".tasksQueue", `[
    {"id": "a1b2c3d4e5f6g7h8", "toolName": "my-tool", "commandSpec": {"command": "/code/tool.sh", "cwd": "/code", "env": {}, "timeoutMs": null},
     "payload": {"tool": "my-tool", "input": {"arg": "value"}, "metadata": {}, "taskId": "a1b2c3d4e5f6g7h8"},
     "status": "completed", "timeoutMs": 60000, "createdAt": "2024-01-01T00:00:00.000Z", "updatedAt": "2024-01-01T00:00:05.000Z", "error": null},
    {"id": "b", "toolName": "my-tool", "payload": {"input": {"n": 1}}, "status": "pending", "createdAt": "2024-01-01T00:00:01.000Z"},
    {"id": "c", "toolName": "my-tool", "status": "running", "createdAt": "2024-01-01T00:00:02.000Z"},
    {"id": "d", "toolName": "my-tool", "status": "failed", "error": "exit 3", "createdAt": "2024-01-01T00:00:03.000Z", "updatedAt": "2024-01-01T00:00:04.000Z"},
    {"id": "e", "toolName": "my-tool", "status": "odd", "createdAt": "2024-01-01T00:00:03.000Z"},
    {"id": 7}]`)
	tasks, bad, err := all(t, path)
	if err != nil || len(tasks) != 4 || len(bad) != 2 {
		t.Fatalf("%d tasks, bad %q, error %v", len(tasks), bad, err)
	}
	want := [][3]string{{"completed", "completed", ""}, {"pending", "", ""}, {"working", "", ""}, {"failed", "agent_error", "exit 3"}}
	for i, w := range want {
		x := &tasks[i]
		if x.State != w[0] || x.Reason != w[1] || w[2] != "" && x.Message != w[2] || x.Tool != "my-tool" || x.Mode != "tool" || x.Queue != "commands" {
			t.Errorf("task %d: %+v", i, x)
		}
	}
	if r := requestOf(t, &tasks[0]); string(r.Arguments) != `{"arg":"value"}` || r.TimeoutMS != 60000 {
		t.Errorf("request: %s, %d ms", r.Arguments, r.TimeoutMS)
	}
}

func TestLinesOfAnExport(t *testing.T) {
	const id = "queue-00000000000000000000000000"
	head, foot, two := `{"signalbox_export":1}`+"\n", `{"end":true,"tasks":1}`+"\n", `{"end":true,"tasks":2}`+"\n"
	line := func(state string) string { return `{"queue_id":"` + id + `","state":"` + state + `"}` + "\n" }
	dir := t.TempDir()
	cases := map[string]struct {
		text, err string
		states    string
		bad       int
	}{
		"whole":          {head + line("pending") + foot, "", "pending", 0},
		"twice":          {head + line("pending") + line("completed") + two, "", "completed", 0},
		"a bad line":     {head + "nonsense\n" + line("pending") + two, "", "pending", 1},
		"one is missing": {head + line("pending") + two, "says 2 tasks, but it has 1", "pending", 0},
		"one too many":   {head + line("pending") + line("completed") + foot, "says 1 tasks, but it has 2", "completed", 0},
		"truncated":      {head + line("pending"), "truncated", "pending", 0},
		"cut in a line":  {head + line("pending") + `{"queue_id":"`, "truncated", "pending", 1},
		"a later format": {`{"signalbox_export":2}` + "\n", "later version", "", 0},
		"something else": {"hello\n", "does not begin like an export", "", 0},
		"empty":          {"", "is empty", "", 0},
	}
	for name, c := range cases {
		tasks, bad, err := all(t, write(t, dir, name+".jsonl", c.text))
		if c.err == "" != (err == nil) || err != nil && !strings.Contains(err.Error(), c.err) {
			t.Errorf("%s: error %v, want %q", name, err, c.err)
		}
		var states []string
		for i := range tasks {
			states = append(states, tasks[i].State)
		}
		if got := strings.Join(states, " "); got != c.states {
			t.Errorf("%s: tasks %q, want %q", name, got, c.states)
		}
		if len(bad) != c.bad {
			t.Errorf("%s: bad records %q, want %d", name, bad, c.bad)
		}
	}
}

func TestInvalidSources(t *testing.T) {
	dir := t.TempDir()
	for source, want := range map[string]string{
		filepath.Join(dir, "missing"): "there is no", dir: "no folder pending or dispatched",
		write(t, dir, "x.json", `[{"a":`): "is not a .tasksQueue", "redis://%zz": "cannot be read", "redis://:secret@127.0.0.1:1/0": "cannot connect",
	} {
		_, _, err := all(t, source)
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "secret") {
			t.Errorf("%s: error %v, want %q and no password", source, err, want)
		}
	}
}
