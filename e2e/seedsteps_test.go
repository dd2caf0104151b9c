package e2e_test

import (
	"context"
	"encoding/json"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/signalbox-ai/signalbox/api"
	"github.com/signalbox-ai/signalbox/client"
)

// script runs a script in testdata with the real curl and returns its output.
func (b *box) script(name string, env ...string) (string, error) {
	b.t.Helper()
	for _, tool := range []string{"sh", "curl", "sed", "grep"} {
		if _, err := exec.LookPath(tool); err != nil {
			b.t.Skipf("the script needs %s, which this machine lacks", tool)
		}
	}
	path, err := filepath.Abs(filepath.Join("testdata", name))
	if err != nil {
		b.t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(b.t.Context(), 2*long)
	defer cancel()
	cmd := exec.CommandContext(ctx, "sh", path)
	cmd.Dir = b.work
	cmd.Env = append(env, "PATH="+os.Getenv("PATH"), "HOME="+b.home, "TMPDIR="+b.root)
	cmd.WaitDelay = time.Second
	said, err := cmd.CombinedOutput()
	return string(said), err
}

// answers are the lines "NAME: STATUS BODY" of the script, by name.
func answers(said string) map[string][]string {
	list := map[string][]string{}
	for line := range strings.Lines(said) {
		if name, rest, ok := strings.Cut(strings.TrimSpace(line), ": "); ok && len(rest) > 4 && rest[3] == ' ' {
			list[name] = append(list[name], rest)
		}
	}
	return list
}

// body expects an answer with a status and exactly these fields, and returns
// them.
func body(t *testing.T, answer string, status string, fields ...string) map[string]any {
	t.Helper()
	code, text, _ := strings.Cut(answer, " ")
	var v map[string]any
	if err := json.Unmarshal([]byte(text), &v); err != nil || code != status {
		t.Fatalf("want %s and JSON, got %q (%v)", status, answer, err)
	}
	for _, f := range fields {
		if _, ok := v[strings.TrimSuffix(f, "?")]; !ok && !strings.HasSuffix(f, "?") {
			t.Errorf("no field %s: %s", f, answer)
		}
	}
	return v
}

// The test steps of the seed execution-queue, with curl, against the real
// binary: the expectations of testdata/execution-queue.sh, and the shapes of
// the bodies.
func TestExecutionQueueSeedSteps(t *testing.T) {
	b := newBox(t)
	up := b.up("--agents", "demo", "--open") // the seed's clients have no token
	said, err := b.script("execution-queue.sh", "DIRECTOR="+up.url, "AGENT=demo")
	if err != nil || !strings.HasSuffix(said, "\nok\n") {
		t.Fatalf("%v\n%s", err, said)
	}
	t.Logf("\n%s", said)
	got := answers(said)
	lane := []string{"agent_name", "is_busy", "current_execution", "queue_length", "queued_executions"}
	if len(got["queue"]) != 4 {
		t.Fatalf("%d lanes were shown, want 4", len(got["queue"]))
	}
	idle := body(t, got["queue"][0], "200", lane...)
	if idle["current_execution"] != nil || len(idle["queued_executions"].([]any)) != 0 {
		t.Errorf("an idle lane: %v", idle)
	}
	busy := body(t, got["queue"][1], "200", lane...)
	current := busy["current_execution"].(map[string]any)
	for field, want := range map[string]any{"source": "user", "status": "running", "agent_name": "demo", "message": "sleep 1s and say hello"} {
		if current[field] != want {
			t.Errorf("current_execution.%s is %v, want %v", field, current[field], want)
		}
	}
	hello := body(t, got["hello"][0], "200", "response", "execution", "metadata", "timestamp")
	if want := "Demo agent finished: sleep 1s and say hello"; hello["response"] != want {
		t.Errorf("response %q, want %q", hello["response"], want)
	}
	execution := hello["execution"].(map[string]any)
	if execution["id"] != current["id"] || len(execution) != 3 {
		t.Errorf("execution %v, while it ran: %v", execution, current)
	}
	for _, field := range []string{"cost_usd", "duration_ms", "input_tokens", "output_tokens", "tool_count"} {
		if _, ok := hello["metadata"].(map[string]any)[field]; !ok {
			t.Errorf("metadata has no %s: %v", field, hello["metadata"])
		}
	}
	full := body(t, got["queue"][2], "200", lane...)
	for i, e := range full["queued_executions"].([]any) {
		if e.(map[string]any)["status"] != "queued" || i > 2 {
			t.Errorf("waiting execution %d: %v", i, e)
		}
	}
	cleared := body(t, got["queue"][3], "200", lane...)
	if cleared["is_busy"] != true || cleared["queue_length"] != 0.0 {
		t.Errorf("after the clear, which leaves what runs: %v", cleared)
	}
	up.stop()
}

// The edge cases of the seed: a stopped agent releases its lane, and the
// answer says what to do while it is down.
func TestExecutionQueueAgentStopped(t *testing.T) {
	b := newBox(t)
	director := b.director()
	agent := b.agent("coder", director.url)
	c := b.client(director.url)
	b.untilState(c, "coder", "idle")
	chat := b.chatAside(c, "coder", api.ChatRequest{Message: "sleep 10m"})
	b.untilBusy(c, "coder")
	agent.stop()
	if err := <-chat; client.Code(err) != "interrupted" {
		t.Errorf("the chat of an agent that was stopped ended with %v", err)
	}
	b.until("the lane is free again", func() bool {
		lane, err := c.Lane(b.ctx(), "coder")
		return err == nil && !lane.IsBusy && lane.CurrentExecution == nil
	})
	b.untilState(c, "coder", "down")
	code, said := b.ask(http.MethodPost, director.url+"/api/agents/coder/chat", `{"message": "hello"}`)
	v := body(t, "503 "+said, "503", "error", "code", "agent", "message", "hint", "retry_after")
	if code != http.StatusServiceUnavailable || v["code"] != "agent_down" || !strings.Contains(v["message"].(string)+v["hint"].(string), "coder") {
		t.Errorf("%d %s", code, said)
	}
}

// An agent that is silent for longer than execution_ttl loses its slot, and
// the next task is executed once the agent is back.
func TestExecutionQueueTTLClearsAStuckExecution(t *testing.T) {
	b := newBox(t)
	director := b.director("--config", b.file("ttl.yaml", "execution_ttl: 1s\n", 0o600))
	agent := b.agent("coder", director.url)
	c := b.client(director.url)
	b.untilState(c, "coder", "idle")
	stuck := b.chatAside(c, "coder", api.ChatRequest{Message: "sleep 10m"})
	b.untilBusy(c, "coder")
	next := b.chatAside(c, "coder", api.ChatRequest{Message: "sleep 1ms, next"})
	agent.freeze()
	err := <-stuck
	if client.Code(err) != "lost" || !strings.Contains(err.Error(), "execution_ttl") {
		t.Errorf("the chat of a silent agent ended with %v", err)
	}
	agent.thaw()
	if err := <-next; err != nil {
		t.Errorf("the next in line: %v", err)
	}
	lines := executions(t, b.execLog())
	if faults := overlaps(lines, nil); len(faults) > 0 || len(starts(lines)) != 2 {
		t.Errorf("executions: %v, %+v", faults, lines)
	}
}

// What an execution reports after it has lost its slot changes neither its
// own task, which has ended, nor the one that now has the slot.
func TestExecutionQueueReleaseFencesTheOldRun(t *testing.T) {
	b := newBox(t)
	director := b.director()
	agent := b.agent("coder", director.url)
	c := b.client(director.url)
	b.untilState(c, "coder", "idle")
	old := b.chatAside(c, "coder", api.ChatRequest{Message: "sleep 300ms, old"})
	id := b.untilBusy(c, "coder")
	agent.freeze() // so that it cannot be told
	got, err := c.ReleaseLane(b.ctx(), "coder")
	if err != nil || !got.WasRunning || !slices.Equal(got.QueueIDs, []string{id}) {
		t.Fatalf("release: %+v, %v", got, err)
	}
	if got, err := c.ReleaseLane(b.ctx(), "coder"); err != nil || got.WasRunning {
		t.Errorf("the second release: %+v, %v", got, err)
	}
	if err := <-old; client.Code(err) != "released" {
		t.Errorf("the chat whose slot was released ended with %v", err)
	}
	next := b.chatAside(c, "coder", api.ChatRequest{Message: "sleep 10ms, new"})
	time.Sleep(400 * time.Millisecond) // by its own clock the old run has ended when it continues
	agent.thaw()
	if err := <-next; err != nil {
		t.Errorf("the chat after the release: %v", err)
	}
	b.until("the late result of the old run is stored", func() bool {
		task, err := c.Task(b.ctx(), id)
		return err == nil && len(task.Stale) == 1
	})
	task, err := c.Task(b.ctx(), id)
	if err != nil || task.State != "failed" || task.Reason != "released" || task.Stale[0].Fence != task.Fence {
		t.Errorf("the released task: %+v, %v", task, err)
	}
	if faults := overlaps(executions(t, b.execLog()), nil); len(faults) > 0 {
		t.Errorf("executions: %v", faults)
	}
}

// Ending an ended execution is a no-op, and the answer says so.
func TestExecutionQueueDoubleEnds(t *testing.T) {
	b := newBox(t)
	director := b.director()
	b.agent("coder", director.url)
	c := b.client(director.url)
	b.untilState(c, "coder", "idle")
	got, err := c.Chat(b.ctx(), "coder", api.ChatRequest{Message: "sleep 1ms"}, client.ChatOptions{})
	if err != nil {
		t.Fatal(err)
	}
	id := got.Response.Execution.ID
	before, _ := c.Task(b.ctx(), id)
	for range 2 {
		if got, err := c.ReleaseLane(b.ctx(), "coder"); err != nil || got.WasRunning {
			t.Errorf("release of an idle agent: %+v, %v", got, err)
		}
		if got, err := c.Cancel(b.ctx(), id); client.Code(err) != "" && client.Code(err) != "already_ended" || got.State == "cancelled" {
			t.Errorf("cancel of an ended task: %+v, %v", got, err)
		}
	}
	if after, err := c.Task(b.ctx(), id); err != nil || after.State != before.State || !after.EndedAt.Equal(*before.EndedAt) {
		t.Errorf("before %+v, after %+v, %v", before, after, err)
	}
}
