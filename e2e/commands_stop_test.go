package e2e_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"
)

// A stopping director that waits for a running tool claims nothing for
// agents: both share one wait.
func TestAStopThatWaitsForAToolClaimsNothing(t *testing.T) {
	b := newCommandBox(t, autoLimits, object{"long": object{"sh": "while [ ! -e $DIR/go ]; do sleep 0.05; done; echo done"}})
	b.args = append(b.args, "--grace", "10m")
	b.start()
	b.agent("worker", b.d.url)
	b.completed(b.c, b.submit(b.c, prompt("before")))
	id := b.call("long", `{}`)
	b.until("the tool runs", func() bool {
		task, err := b.c.ToolTask(b.ctx(), id)
		return err == nil && task.Status == "running"
	})
	b.d.signal(syscall.SIGTERM)
	b.d.says("stopping: no new claims")
	late := b.submit(b.c, prompt("submitted during the drain"))
	ctx, cancel := context.WithTimeout(b.ctx(), time.Second)
	defer cancel()
	if task, err := b.c.Wait(ctx, late); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("it was claimed while a tool was running: %+v, %v", task, err)
	}
	if task, err := b.c.Task(b.ctx(), late); err != nil || task.State != "pending" {
		t.Errorf("%+v, %v", task, err)
	}
	if err := os.WriteFile(filepath.Join(b.dir, "go"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if code := b.d.exits(); code != 0 {
		t.Errorf("exit code %d", code)
	}
	b.args[len(b.args)-1] = "100ms"
	b.start()
	if task := b.ended(id); task.Status != "completed" {
		t.Errorf("%+v", task)
	}
	b.completed(b.c, late)
}
