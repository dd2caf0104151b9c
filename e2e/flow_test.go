package e2e_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/signalbox-ai/signalbox/api"
	"github.com/signalbox-ai/signalbox/client"
)

// TestFullQueueFlow is the system test of the work-queue seed, with its steps.
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

// scheduledJob is a job as the seed's scheduler holds it. The scheduler itself
// is a part of its own; here this client plays its role and submits with
// the request and the error handling of the seed's submitViaQueue and runJob.
type scheduledJob struct {
	director   string
	name       string
	lastStatus string
	lastID     string
}

var errQueueFull = errors.New("queue full")

func (j *scheduledJob) run(prompt string) {
	id, err := j.submitViaQueue(prompt)
	switch {
	case errors.Is(err, errQueueFull):
		j.lastStatus, j.lastID = "skipped_queue_full", ""
	case err != nil:
		j.lastStatus, j.lastID = "skipped_error", ""
	default:
		j.lastStatus, j.lastID = "queued", id
	}
}

func (j *scheduledJob) submitViaQueue(prompt string) (string, error) {
	body, err := json.Marshal(map[string]any{
		"prompt": prompt, "model": "sonnet", "timeout_seconds": 1800, "source": "scheduler", "source_job": j.name,
	})
	if err != nil {
		return "", err
	}
	resp, err := http.Post(j.director+"/api/queue/task", "application/json", bytes.NewReader(body))
	if err != nil {
		return "", err
	}
	defer resp.Body.Close()
	if resp.StatusCode == http.StatusServiceUnavailable {
		return "", errQueueFull
	}
	if resp.StatusCode != http.StatusCreated {
		return "", fmt.Errorf("unexpected status: %d", resp.StatusCode)
	}
	var result struct {
		QueueID string `json:"queue_id"`
	}
	return result.QueueID, errors.Join(json.NewDecoder(resp.Body).Decode(&result), notEmpty(&result.QueueID))
}

func notEmpty(s *string) error {
	if *s == "" {
		return errors.New("an empty queue_id")
	}
	return nil
}

// TestSchedulerQueueIntegration is the integration test of the work-queue
// seed, with its steps.
func TestSchedulerQueueIntegration(t *testing.T) {
	// 1. Start director, agent, scheduler.
	b := newBox(t)
	b.vars["AG_QUEUE_MAX_SIZE"] = "2" // the seed's name of the limit
	director := b.director()
	gate, command := b.gated()
	b.agent("worker", director.url, command...)
	c := b.client(director.url)
	job := &scheduledJob{director: director.url, name: "test-job"}

	// 2. Make the agent busy.
	blocking := gate.holdWith(c, "blocking task")

	// 3. Trigger the scheduler's job.
	job.run("nightly maintenance")

	// 4. Verify the task is queued, not rejected.
	if job.lastStatus != "queued" {
		t.Fatalf("last_status %q", job.lastStatus)
	}
	queued := job.lastID
	task, err := c.Task(b.ctx(), queued)
	if err != nil || task.State != "pending" || task.Source != "scheduler" || task.SourceJob != "test-job" || task.Model != "sonnet" || task.TimeoutSeconds != 1800 {
		t.Errorf("queued as %+v, %v", task, err)
	}
	// A full queue skips the run, stores nothing, and is said in the log.
	job.run("nightly maintenance")
	second := job.lastID
	job.run("nightly maintenance")
	if job.lastStatus != "skipped_queue_full" {
		t.Errorf("last_status %q with a full queue", job.lastStatus)
	}
	director.says("queue=submit_rejected reason=queue_full depth=2")

	// 5. Wait for the agent to complete.
	gate.open()
	b.completed(c, blocking)

	// 6. Verify the queued task is dispatched and the queue is empty.
	b.completed(c, queued)
	b.completed(c, second)
	if queue, err := c.Queue(b.ctx(), client.QueueOptions{}); err != nil || queue.Depth != 0 {
		t.Errorf("the queue is not empty: %+v, %v", queue, err)
	}
	past, err := c.History(b.ctx(), client.HistoryOptions{SourceJob: "test-job"})
	if err != nil || len(past.Tasks) != 2 {
		t.Errorf("the job's history: %+v, %v", past, err)
	}
}

// Fields of the request travel to the agent's program.
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
