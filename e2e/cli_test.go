package e2e_test

import (
	"encoding/json"
	"fmt"
	"regexp"
	"strings"
	"testing"

	"github.com/signalbox-ai/signalbox/api"
)

// The exit code of a waiting command says how the task ended.
func TestExitCodesOfAWait(t *testing.T) {
	b := newBox(t)
	b.vars["SIGNALBOX_QUEUE_MAX_SIZE"] = "1"
	director := b.director()
	gate, command := b.gated()
	b.agent("worker", director.url, command...)
	b.agent("demo", director.url)
	c := b.client(director.url)

	b.want(0, "submit", "--wait", "--agent", "demo", "sleep 1ms")
	failed := b.want(10, "submit", "--wait", "--agent", "demo", "sleep 1ms, exit 3")
	if !strings.Contains(failed.err, "exit status 3") {
		t.Errorf("no reason for the failure: %s", failed.err)
	}
	b.want(12, "submit", "--wait", "--agent", "demo", "--timeout", "1s", "sleep 1h")
	b.want(3, "status", "queue-00000000000000000000000000")
	b.want(3, "submit", "--agent", "nobody", "p")
	b.want(7, "status", "--director", "http://"+freePort(t))
	b.want(2, "submit", "--agent", "demo", "--kind", "demo", "p")

	// A wait that ends leaves the task alone.
	id := b.submit(c, api.SubmitRequest{Prompt: "gate busy", Agent: "worker"})
	gate.arrived()
	over := b.want(124, "submit", "--wait", "--wait-timeout", "2s", "--agent", "worker", "in line") // long enough to store a task on any machine
	waiting := regexp.MustCompile(`queue-[0-9a-z]{20,}`).FindString(over.err)
	if task, err := c.Task(b.ctx(), waiting); err != nil || task.State != "pending" {
		t.Errorf("the task that was waited for: %+v, %v", task, err)
	}

	// The queue is full now: the seed's exact message.
	full := b.want(6, "submit", "one too many")
	if first, _, _ := strings.Cut(full.err, "\n"); first != "Error: queue is at capacity (1 tasks)" {
		t.Errorf("full queue: %q", full.err)
	}
	if strings.Contains(full.out, "queue-") {
		t.Errorf("an id for a task that was not stored: %q", full.out)
	}

	// Someone else cancels the task while the command waits.
	retry := b.start("retry", waiting)
	if code := retry.exits(); code != 5 {
		t.Errorf("retry of a task that has not ended: exit code %d", code)
	}
	b.want(0, "cancel", waiting)
	waited := b.start("submit", "--wait", "--agent", "worker", "to be cancelled")
	waited.says("pending")
	queue := parse[api.Queue](t, b.want(0, "status", "--json").out)
	if len(queue.Tasks) != 1 {
		t.Fatalf("queue: %+v", queue)
	}
	if got := b.want(0, "queue-cancel", queue.Tasks[0].QueueID); got.out != "Cancelled: "+queue.Tasks[0].QueueID+"\n" {
		t.Errorf("cancel says %q", got.out)
	}
	if code := waited.exits(); code != 11 {
		t.Errorf("exit code %d for a cancelled task", code)
	}
	gate.open()
	b.completed(c, id)
}

// Commands that read, with a director that has something of everything.
func TestReadingCommands(t *testing.T) {
	b := newBox(t)
	director := b.director()
	gate, command := b.gated()
	b.agent("worker", director.url, command...)
	c := b.client(director.url)
	done := b.submit(c, prompt("first of all"))
	b.completed(c, done)
	running := gate.holdWith(c, "long")
	waiting := b.submit(c, prompt("in line"))

	// why names the blocking task.
	why := b.want(0, "why", waiting)
	if !strings.Contains(why.out, "✗") || !strings.Contains(why.out, running) && !strings.Contains(why.out, running[len(running)-4:]) {
		t.Errorf("why does not name %s:\n%s", running, why.out)
	}
	// Any unique beginning or end of an ID works; for an ambiguous one the
	// candidates are listed.
	tail := waiting[len(waiting)-12:]
	if got := b.want(0, "status", tail); !strings.HasPrefix(got.out, waiting+" [pending] in line\n") {
		t.Errorf("status by suffix: %s", got.out)
	}
	b.want(0, "status", waiting[:len(waiting)-1])
	if got := b.want(2, "status", "queue-"); !strings.Contains(got.err, waiting) || !strings.Contains(got.err, running) {
		t.Errorf("an ambiguous id: %s", got.err)
	}
	// Flags may come before or after arguments.
	if before, after := b.want(0, "--json", "status", waiting), b.want(0, "status", waiting, "--json"); before.out != after.out {
		t.Errorf("--json before and after: %q, %q", before.out, after.out)
	}
	for _, args := range [][]string{
		{"status"}, {"status", waiting}, {"why", waiting}, {"agents"}, {"history"}, {"logs", done}, {"pause", "pool:none"}, {"resume", "pool:none"}, {"version"},
	} {
		got := b.want(0, append(args, "--json")...)
		if !json.Valid([]byte(got.out)) || got.err != "" {
			t.Errorf("%v --json: %q %q", args, got.out, got.err)
		}
	}
	if got := b.want(3, "why", "queue-00000000000000000000000000", "--json"); got.out != "" || parse[api.Error](t, got.err).Error != "not_found" {
		t.Errorf("an error with --json: %q %q", got.out, got.err)
	}
	if got := b.want(0, "history", "--state", "completed"); !strings.Contains(got.out, done) || strings.Contains(got.out, waiting) {
		t.Errorf("history: %s", got.out)
	}
	if got := b.want(0, "logs", done); got.out != "did first of all\n" {
		t.Errorf("logs: %q", got.out)
	}
	if got := b.want(0, "agents"); !strings.Contains(got.out, "worker") || !strings.Contains(got.out, "1/1") {
		t.Errorf("agents: %s", got.out)
	}
	// Completion suggests agents and IDs.
	for _, args := range [][]string{{"submit", "--agent", ""}, {"release", ""}} {
		if got := b.want(0, append([]string{"__complete"}, args...)...); !strings.Contains(got.out, "worker") {
			t.Errorf("completion of %v: %q", args, got.out)
		}
	}
	if got := b.want(0, "__complete", "cancel", ""); !strings.Contains(got.out, waiting) || strings.Contains(got.out, done) {
		t.Errorf("completion of cancel: %q", got.out)
	}
	if got := b.want(0, "completion", "bash"); !strings.Contains(got.out, "signalbox") {
		t.Errorf("completion script: %q", got.out)
	}
	gate.open()
	b.completed(c, waiting)
}

// logs -f prints a task's output as it is written, until its end.
func TestLogsFollow(t *testing.T) {
	b := newBox(t)
	director := b.director()
	gate, command := b.gated()
	b.agent("worker", director.url, command...)
	c := b.client(director.url)
	id := gate.holdWith(c, "loud")
	logs := b.start("logs", "-f", id)
	logs.prints("at the gate")
	events := b.start("events", "--task", id, "--after", "0", "--json")
	events.prints(`"accept"`)
	gate.open()
	if code := logs.exits(); code != 0 || logs.out.text() != "at the gate\ndid gate loud\n" {
		t.Errorf("exit code %d, %q", code, logs.out.text())
	}
	events.prints(`"finish"`)
	events.kill()
	for line := range strings.Lines(events.out.text()) {
		if e := parse[api.Event](t, line); e.QueueID != id {
			t.Errorf("an event of another task: %+v", e)
		}
	}
}

func TestPauseResumeAndRetry(t *testing.T) {
	b := newBox(t)
	b.up()
	b.want(0, "pause", "--reason", "maintenance window")
	id := parse[api.SubmitResponse](t, b.want(0, "submit", "sleep 1ms", "--json").out).QueueID
	if got := b.want(0, "why", id); !strings.Contains(got.out, "maintenance window") {
		t.Errorf("why does not name the pause: %s", got.out)
	}
	if got := b.want(0, "status"); !strings.Contains(got.err, "maintenance window") {
		t.Errorf("status does not name the pause: %q %q", got.out, got.err)
	}
	b.want(0, "resume")
	b.want(0, "logs", "-f", id)
	again := parse[api.SubmitResponse](t, b.want(0, "retry", id, "--json").out)
	if again.RetryOf != id || again.QueueID == id {
		t.Errorf("retry: %+v", again)
	}
	b.want(0, "logs", "-f", again.QueueID)
	got := b.want(0, "retry", again.QueueID, "--prompt", "sleep 1ms edited", "--wait")
	if !strings.Contains(got.out, "edited") {
		t.Errorf("an edited retry: %q", got.out)
	}
	if got := b.want(0, "history", "--json"); len(parse[api.History](t, got.out).Tasks) != 3 {
		t.Errorf("history: %s", got.out)
	}
}

// submit --wait-for-room waits for room instead of failing.
func TestWaitForRoom(t *testing.T) {
	b := newBox(t)
	b.vars["SIGNALBOX_QUEUE_MAX_SIZE"] = "1"
	director := b.director()
	gate, command := b.gated()
	b.agent("worker", director.url, command...)
	c := b.client(director.url)
	gate.holdWith(c, "busy")
	b.submit(c, prompt("takes the only place"))
	patient := b.start("submit", "--wait-for-room", "--wait", "patient")
	patient.says("queue is at capacity (1 tasks): waiting for room")
	gate.open()
	if code := patient.exits(); code != 0 || patient.out.text() != "did patient\n" {
		t.Errorf("exit code %d: %q", code, patient.out.text())
	}
}

// The whole of a large log can be read, and the task keeps its tail.
func TestALargeLog(t *testing.T) {
	b := newBox(t)
	up := b.up()
	c := b.client(up.url)
	id := b.submit(c, prompt("print 1MB, sleep 1ms"))
	task := b.completed(c, id)
	got := b.want(0, "logs", id)
	if len(got.out) < 100<<10 || !strings.HasSuffix(strings.TrimSpace(got.out), fmt.Sprintf("step 1 of 1: %s", task.Prompt)) {
		t.Errorf("%d bytes, ending in %q", len(got.out), got.out[max(0, len(got.out)-80):])
	}
	whole := b.want(0, "logs", "--whole", id)
	if len(whole.out) < 1<<20 || !strings.HasSuffix(whole.out, got.out) || whole.err != "" {
		t.Errorf("the whole log has %d bytes, and says %q", len(whole.out), whole.err)
	}
	var out api.Output
	if err := json.Unmarshal([]byte(b.want(0, "logs", "--whole", "--after", "100", "--json", id).out), &out); err != nil || out.Text != whole.out[100:] || out.Seq != 100 || out.Next != int64(len(whole.out)) || !out.Done {
		t.Errorf("%v: from byte 100 it has %d bytes, %d to %d", err, len(out.Text), out.Seq, out.Next)
	}
	if again := b.want(2, "logs", "--whole", "-f", id); !strings.Contains(again.err, "leave out --follow") {
		t.Errorf("--whole with -f: %q", again.err)
	}
	if len(got.out) < 1<<20 && got.err == "" {
		t.Errorf("%d bytes of 1 MB, and nothing says that some are missing", len(got.out))
	}
}

// A waiting task is edited from the command line: the agent gets the edited version.
func TestEditOfAWaitingTask(t *testing.T) {
	b := newBox(t)
	director := b.director()
	gate, command := b.gated()
	b.agent("worker", director.url, command...)
	b.agent("demo", director.url)
	c := b.client(director.url)
	running := b.submit(c, api.SubmitRequest{Prompt: "gate busy", Agent: "worker"})
	gate.arrived()
	first := b.submit(c, api.SubmitRequest{Prompt: "first", Agent: "worker"})
	second := b.submit(c, api.SubmitRequest{Prompt: "second", Agent: "worker"})

	top := b.want(0, "edit", second, "--top")
	if want := "Changed: " + second + " (position 1 in agent:worker)\n"; top.out != want {
		t.Errorf("%q, want %q", top.out, want)
	}
	edited := parse[api.Task](t, b.want(0, "edit", first, "--prompt", "sleep 1ms, changed", "--agent", "demo", "--priority", "3", "--json").out)
	if edited.Prompt != "sleep 1ms, changed" || edited.Priority != 3 || edited.EditedAt == nil {
		t.Errorf("%+v", edited)
	}
	if done := b.completed(c, first); done.Agent != "demo" || done.Prompt != "sleep 1ms, changed" {
		t.Errorf("%+v", done)
	}

	b.want(2, "edit", second)
	b.want(2, "edit", second, "--top", "--back")
	b.want(2, "edit", second, "--priority", "11")
	b.want(3, "edit", second, "--agent", "nobody")
	b.want(3, "edit", "queue-00000000000000000000000000", "--top")
	b.want(5, "edit", second, "--top", "--revision", "1")
	started := b.want(5, "edit", running, "--prompt", "too late")
	if !strings.Contains(started.err, "is working") {
		t.Errorf("a task that has started: %s", started.err)
	}
}
