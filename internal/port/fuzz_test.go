package port_test

import (
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/signalbox-ai/signalbox"
)

// FuzzSources: each record of an export, a .tasksQueue and a work queue's file
// becomes a task with an ID and a valid request, or is reported with its place
// and a reason. A second reading gives the same, so that an import can be
// repeated.
func FuzzSources(f *testing.F) {
	for _, s := range []string{
		`{"queue_id": "queue-abc12345", "state": "pending", "created_at": "2025-01-17T10:00:00Z", "prompt": "p", "source": "scheduler", "env": {"KEY": "v"}}`,
		`[{"taskId":"t","toolName":"x","status":"pending","args":{},"createdAt":1737108000000}]`, `[1]`, `{}`, ``, `[`, `{"signalbox_export":1}` + "\n" + `{"task":{}}`, "\xff", `[{"taskId":"../x"}]`, `{"queue_id":1}`, "{}\n{}\n",
		`{"queue_id":"a","created_at":"0001-01-01T00:00:00Z","prompt":""}`,
	} {
		f.Add(s)
	}
	dir := f.TempDir()
	f.Fuzz(func(t *testing.T, text string) {
		folder := filepath.Join(dir, "queue")
		write(t, folder, "pending/queue-abc12345.json", text)
		for _, source := range []string{write(t, dir, "export.jsonl", text), write(t, dir, ".tasksQueue", text), folder} {
			tasks, bad, err := all(t, source)
			if err != nil && err.Error() == "" {
				t.Fatal("a refusal without a message")
			}
			for _, why := range bad {
				if !strings.Contains(why, ": ") || len(why) > 4000+len(text) {
					t.Fatalf("%q: %q", text, why)
				}
			}
			for i := range tasks {
				if tasks[i].QueueID != "" && !signalbox.ValidID(tasks[i].QueueID) && filepath.Base(source) != "export.jsonl" {
					t.Fatalf("%q makes a task %q", text, tasks[i].QueueID)
				}
				if !utf8.ValidString(tasks[i].QueueID) {
					t.Fatalf("%q makes a task %q", text, tasks[i].QueueID)
				}
			}
			again, badAgain, errAgain := all(t, source)
			if len(again) != len(tasks) || len(badAgain) != len(bad) || (err == nil) != (errAgain == nil) {
				t.Fatalf("%q: %d tasks and %d bad lines, then %d and %d", text, len(tasks), len(bad), len(again), len(badAgain))
			}
			for i := range tasks {
				if again[i].QueueID != tasks[i].QueueID {
					t.Fatalf("%q: task %q is called %q the second time", text, tasks[i].QueueID, again[i].QueueID)
				}
			}
		}
	})
}
