package e2e_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/signalbox-ai/signalbox/api"
	"github.com/signalbox-ai/signalbox/client"
)

// Tasks move from one director to another, with their results and in order;
// repeating the import changes nothing.
func TestTasksMoveToAnotherDirector(t *testing.T) {
	b := newBox(t)
	old := b.director()
	c := b.client(old.url)
	b.agent("coder", old.url)
	done := b.submit(c, api.SubmitRequest{Prompt: "say hello", Agent: "coder"})
	before := b.completed(c, done)
	b.want(0, "pause", "--director", old.url)
	var waiting []string
	for _, text := range []string{"first", "second"} {
		waiting = append(waiting, b.submit(c, prompt(text)))
	}
	secret := b.submit(c, api.SubmitRequest{Prompt: "with a secret", Env: map[string]string{"KEY": "swordfish"}})
	file := filepath.Join(b.work, "tasks.jsonl")
	b.want(0, "export", "--director", old.url, "-o", file)
	b.want(1, "export", "--director", old.url, "-o", file) // the file exists already
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(string(text), "swordfish") || strings.Count(string(text), "\n") != 7 {
		t.Errorf("the export has a secret, or does not have 4 tasks and the usage between its first and last line:\n%s", text)
	}
	old.stop()

	fresh := *b
	fresh.data = filepath.Join(b.root, "data-2")
	next := fresh.director()
	c = b.client(next.url)
	type imported struct {
		Imported, Known int
		Refused         []struct {
			QueueID string `json:"queue_id"`
			Message string
		}
	}
	got := parse[imported](t, b.want(1, "import", "--json", "--director", next.url, file).out)
	if got.Imported != 3 || len(got.Refused) != 1 || got.Refused[0].QueueID != secret || !strings.Contains(got.Refused[0].Message, "env") {
		t.Errorf("imported: %+v", got)
	}
	if again := parse[imported](t, b.want(1, "import", "--json", "--director", next.url, file).out); again.Imported != 0 || again.Known != 3 {
		t.Errorf("imported again: %+v", again)
	}
	bad := filepath.Join(b.work, "bad.jsonl") // an unreadable line does not stop the import of the others
	lines := strings.SplitAfter(string(text), "\n")
	lines[2] = strings.Replace(lines[2], `"prompt":"`, `"prompt":"\ud800`, 1)
	lines[2] = strings.Replace(lines[2], `"queue_id":"queue-0`, `"queue_id":"queue-1`, 1)
	if err := os.WriteFile(bad, []byte(strings.Join(lines, "")), 0o600); err != nil {
		t.Fatal(err)
	}
	if third := parse[imported](t, b.want(1, "import", "--json", "--director", next.url, bad).out); third.Known != 2 || len(third.Refused) != 2 {
		t.Errorf("imported with a bad line: %+v", third)
	}
	after := b.end(c, done)
	if after.Result == nil || after.Result.Output != before.Result.Output || !after.EndedAt.Equal(*before.EndedAt) || after.Agent != "coder" {
		t.Errorf("the ended task is %+v, was %+v", after, before)
	}
	b.agent("coder-2", next.url)
	var ends [2]api.Task
	for i, id := range waiting {
		ends[i] = b.completed(c, id)
	}
	if !ends[0].DispatchedAt.Before(*ends[1].DispatchedAt) {
		t.Errorf("the second task ran first: %s, %s", ends[0].DispatchedAt, ends[1].DispatchedAt)
	}
}

// One command imports the tasks of a seed's queue.
func TestSeedFoldersAreImported(t *testing.T) {
	b := newBox(t)
	d := b.director()
	dir := filepath.Join(b.root, "queue")
	for path, text := range map[string]string{
		"pending/queue-b.json":    `{"queue_id":"queue-b","created_at":"2025-01-17T10:00:01Z","prompt":"say second","source":"web","env":{"A":"b"}}`,
		"pending/queue-a.json":    `{"queue_id":"queue-a","created_at":"2025-01-17T10:00:00Z","prompt":"say first","source":"cli"}`,
		"dispatched/queue-r.json": `{"queue_id":"queue-r","created_at":"2025-01-17T09:00:00Z","prompt":"ran","source":"cli","task_id":"t","attempts":1}`,
	} {
		path = filepath.Join(dir, path)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if said := b.want(0, "import", "--dry-run", dir).out; !strings.Contains(said, "3 tasks, nothing was imported") {
		t.Errorf("a dry run says %q", said)
	}
	said := b.want(0, "import", "--director", d.url, dir).out
	if !strings.Contains(said, "Imported 3 tasks from the folder of a work queue; 0 were imported before") {
		t.Errorf("it says %q", said)
	}
	history := parse[api.History](t, b.want(0, "history", "--json", "--director", d.url).out)
	if len(history.Tasks) != 1 || history.Tasks[0].Reason != "interrupted" || !strings.Contains(history.Tasks[0].Message, "signalbox retry") {
		t.Errorf("what ran is %+v", history.Tasks)
	}
	b.agent("coder", d.url)
	b.until("both have completed", func() bool {
		h := parse[api.History](t, b.want(0, "history", "--json", "--state", "completed", "--director", d.url).out)
		return len(h.Tasks) == 2 && h.Tasks[1].PromptPreview == "say first"
	})
	// They can also be found by their old IDs.
	if got := parse[api.Task](t, b.want(0, "status", "--json", "queue-a", "--director", d.url).out); got.PromptPreview != "say first" || got.State != "completed" {
		t.Errorf("queue-a is %+v", got)
	}
	if said := b.want(0, "logs", "queue-b", "--director", d.url).out; !strings.Contains(said, "second") {
		t.Errorf("the log of queue-b is %q", said)
	}
	c := b.client(d.url)
	task, err := c.Task(b.ctx(), "queue-r")
	if err != nil || task.Reason != "interrupted" {
		t.Errorf("queue-r is %+v, %v", task, err)
	}
	if _, err := c.Retry(b.ctx(), "queue-r", api.RetryRequest{}, client.SubmitOptions{}); err != nil {
		t.Errorf("queue-r cannot be retried: %v", err)
	}
	b.want(3, "status", "queue-c", "--director", d.url)
}
