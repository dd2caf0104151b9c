package agentd_test

import (
	"bufio"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/signalbox-ai/signalbox/api"
)

// The agent in docs/agents.md works: the test extracts it from the page and
// runs it.
func TestAgentOfTheDocs(t *testing.T) {
	python, err := exec.LookPath("python3")
	if err != nil {
		t.Skip("python3 is not installed")
	}
	page, err := os.ReadFile(filepath.Join("..", "..", "docs", "agents.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, rest, ok := strings.Cut(string(page), "```python\n")
	code, _, closed := strings.Cut(rest, "```")
	if !ok || !closed {
		t.Fatal("docs/agents.md shows no Python agent")
	}
	cmd := exec.Command(python, "-c", code, "0")
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	tr := &http.Transport{}
	t.Cleanup(tr.CloseIdleConnections)
	a := &agent{t: t, url: "http://127.0.0.1:" + strings.TrimSpace(line), client: &http.Client{Transport: tr}}

	var s api.AgentStatus
	if code := a.do("GET", "/status", nil, &s); code != 200 || s.Type != "agent" || s.State != "idle" {
		t.Fatalf("status: %d %+v", code, s)
	}
	acc := a.submit(api.AgentTask{Prompt: "make this loud", QueueID: "queue-a", Fence: 1})
	if acc.Status != "working" || !strings.HasPrefix(acc.TaskID, "task-") {
		t.Errorf("%+v", acc)
	}
	end := api.AgentTaskStatus{State: "working"}
	for deadline := time.Now().Add(long); end.State == "working" && time.Now().Before(deadline); {
		end = a.get(acc.TaskID) // a plain agent has no long poll
	}
	if end.State != "completed" || end.Output != "MAKE THIS LOUD" || end.ExitCode == nil || *end.ExitCode != 0 {
		t.Errorf("%+v", end)
	}
	if code := a.do("GET", "/task/task-unknown", nil, nil); code != 404 {
		t.Errorf("unknown task: %d", code)
	}
}
