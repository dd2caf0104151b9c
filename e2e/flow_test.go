package e2e_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/signalbox-ai/signalbox/api"
	"github.com/signalbox-ai/signalbox/client"
)

// TestFullQueueFlow is the system test of the work-queue seed, with the same
// steps.
func TestFullQueueFlow(t *testing.T) {
	// 1. Build and start all components.
	b := newBox(t)
	director := b.director()
	gate, command := b.gated()
	agent := b.agent("worker", director.url, command...)
	c := b.client(director.url)

	// 2. Submit multiple tasks while the agent is working.
	ids := []string{gate.holdWith(c, "first")}
	for n := range 5 {
		got, err := c.Submit(b.ctx(), prompt(fmt.Sprintf("task %d", n)), client.SubmitOptions{})
		if err != nil {
			t.Fatal(err)
		}
		// 3. Verify the queue grows.
		if got.Position != n+1 || got.State != "pending" {
			t.Errorf("task %d: position %d, %s", n, got.Position, got.State)
		}
		ids = append(ids, got.QueueID)
		if queue, err := c.Queue(b.ctx(), client.QueueOptions{}); err != nil || queue.Depth != n+1 || queue.DispatchedCount != 1 {
			t.Errorf("after %d submits: %+v, %v", n+1, queue, err)
		}
	}
	if got := b.want(0, "queue-status"); !strings.Contains(got.out, "Queue: 5/50 tasks\n  1. "+ids[1]+" [pending] task 0\n") {
		t.Errorf("queue-status: %s", got.out)
	}

	// 4. Verify tasks are dispatched in order as the agent becomes idle.
	// 5. Verify all tasks complete.
	gate.open()
	for n, id := range ids {
		want := "did gate first\n"
		if n > 0 {
			want = fmt.Sprintf("did task %d\n", n-1)
		}
		if task := b.completed(c, id); !strings.HasSuffix(task.Result.Output, want) {
			t.Errorf("%s answered %q, want %q", id, task.Result.Output, want)
		}
	}
	if got := starts(executions(t, b.execLog())); !slices.Equal(got, ids) {
		t.Errorf("executed in the order\n%v, submitted in the order\n%v", got, ids)
	}
	if queue, err := c.Queue(b.ctx(), client.QueueOptions{}); err != nil || queue.Depth != 0 {
		t.Errorf("the queue is not empty: %+v, %v", queue, err)
	}
	agent.stop()
	director.stop()
}

// Fields of the request reach the agent's program.
func TestTheRequestReachesTheProgram(t *testing.T) {
	b := newBox(t)
	director := b.director()
	script := b.file("show.sh", "#!/bin/sh\necho \"$1|$2|$3|$CANARY|$PWD\"\n", 0o700)
	b.file("work/project/.keep", "", 0o600)
	b.agent("worker", director.url, "--workdir", b.work, "--", "/bin/sh", script, "{prompt}", "{model}", "{session_id}")
	c := b.client(director.url)
	id := b.submit(c, api.SubmitRequest{
		Prompt: "do it", Model: "m-1", SessionID: "talk-1", Project: &api.Project{Path: "project"}, Env: map[string]string{"CANARY": "yellow"},
	})
	want := "do it|m-1|talk-1|yellow|" + b.work + "/project\n"
	if task := b.completed(c, id); task.Result.Output != want {
		t.Errorf("the program got %q, want %q", task.Result.Output, want)
	}
}
