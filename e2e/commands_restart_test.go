package e2e_test

import (
	"fmt"
	"syscall"
	"testing"

	"github.com/signalbox-ai/signalbox/client"
	"github.com/signalbox-ai/signalbox/internal/soak"
)

// policy is a restart policy and the fate of its tool's tasks.
type policy struct {
	tool    string
	restart any    // in the configuration; nil: default
	running string // final status of a running task
	waiting string // final status of a waiting task
}

var policies = []policy{
	{"plain", nil, "failed", "completed"},
	{"fail", "fail", "failed", "failed"},
	{"requeue", "requeue", "completed", "completed"},
	{"keep", "keep", "failed", "completed"},
	{"mixed", object{"pending": "fail", "running": "requeue"}, "completed", "failed"},
}

// If the director dies or is stopped in the middle of many runs, each task
// ends as its tool's policy says, and no process of the first runs is alive.
func TestEveryTaskEndsAsItsPolicySays(t *testing.T) {
	kill := func(b *commandBox) {
		b.d.signal(syscall.SIGKILL) // only the director: its runs stay alive
		b.d.exits()
	}
	stop := func(b *commandBox) {
		b.d.stop()
		if left := b.survivors(""); len(left) > 0 {
			t.Errorf("after the stop %d processes live: %v", len(left), left)
		}
	}
	t.Run("kill -9", func(t *testing.T) { restartTest(t, autoLimits, kill) })
	t.Run("kill -9 without control groups", func(t *testing.T) { restartTest(t, rlimits, kill) })
	t.Run("SIGTERM", func(t *testing.T) { restartTest(t, autoLimits, stop) })
}

func restartTest(t *testing.T, limits string, end func(*commandBox)) {
	runningEach, waitingEach := soak.Pick(4, 20), soak.Pick(2, 4)
	tools := object{"quick": object{"sh": "echo did; echo careful >&2"}}
	for _, p := range policies {
		tools[p.tool] = object{"command": "family"}
		if p.restart != nil {
			tools[p.tool].(object)["restart"] = p.restart
		}
	}
	b := newCommandBox(t, limits, tools, fmt.Sprintf("max_concurrent: %d", runningEach*len(policies)))
	b.start()
	var before []string
	for range 5 {
		id := b.call("quick", `{}`)
		b.did(id, "did\nstderr:\ncareful\n")
		before = append(before, id)
	}
	members, input := 3, `{"how": ""}`
	if b.grouped() {
		members, input = 4, `{"how": "hidden"}`
	}
	running, waiting := map[string]policy{}, map[string]policy{}
	for range runningEach {
		for _, p := range policies {
			running[b.call(p.tool, input)] = p
		}
	}
	b.until("all run", func() bool { return len(b.lives()) == members*len(running) })
	for range waitingEach {
		for _, p := range policies {
			waiting[b.call(p.tool, input)] = p
		}
	}
	for id := range waiting {
		if task, err := b.c.ToolTask(b.ctx(), id); err != nil || task.Status != "pending" {
			t.Fatalf("%+v, %v", task, err)
		}
	}
	end(b)
	b.open()
	b.start()
	if left := b.survivors(""); len(left) > 0 {
		t.Errorf("%d processes of the first runs live when the director is back: %v", len(left), left)
	}
	for id, p := range running {
		b.endsAs(id, p.running, map[string]int{"failed": 1, "completed": 2}[p.running])
	}
	for id, p := range waiting {
		b.endsAs(id, p.waiting, map[string]int{"failed": 0, "completed": 1}[p.waiting])
	}
	for _, id := range before {
		b.did(id, "did\nstderr:\ncareful\n")
	}
	page, err := b.c.ToolTasks(b.ctx(), client.ToolTasksOptions{Limit: 1000})
	if err != nil {
		t.Fatal(err)
	}
	if want := len(before) + len(running) + len(waiting); len(page.Tasks) != want {
		t.Errorf("%d tasks in the list, want %d", len(page.Tasks), want)
	}
	if n := len(b.lives()); n != members*len(running) {
		t.Errorf("%d processes stayed, want none after the restart", n-members*len(running))
	}
}

// endsAs expects how a task ends after a restart, and how often it began.
func (b *commandBox) endsAs(id, status string, runs int) {
	b.t.Helper()
	task := b.ended(id)
	text := failure(task)
	if status == "completed" {
		text = said(task)
	}
	want := map[string]string{"failed": interrupted, "completed": "did " + id + "\n"}[status]
	if task.Status != status || text != want {
		b.t.Errorf("%s: %s: %q, %s; want %s: %q", task.ToolName, task.Status, text, task.Message, status, want)
	}
	if n := b.runs()[id]; n != runs {
		b.t.Errorf("a task of %s that ends as %s began %d times, want %d", task.ToolName, status, n, runs)
	}
}
