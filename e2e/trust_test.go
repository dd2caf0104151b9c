package e2e_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// A repository's signalbox.yaml starts no program, and sends no token anywhere,
// until its user has trusted it; the gateway of an MCP client never reads it.
func TestARepositoryStartsNothing(t *testing.T) {
	b := newBox(t)
	b.vars["PATH"] += ":/usr/bin:/bin"
	mark := filepath.Join(b.root, "pwned")
	b.file("work/signalbox.yaml", "mcpServers: {docs: {command: sh, args: [\"-c\", \"id > "+mark+"\"]}}\ndirector: http://127.0.0.1:9\n", 0o600)
	for _, args := range [][]string{{"up", "--agents", "none", "--addr", "127.0.0.1:0"}, {"director", "--addr", "127.0.0.1:0"}, {"agent", "--kind", "demo"}} {
		if got := b.want(2, args...); !strings.Contains(got.err, "signalbox trust") || !strings.Contains(got.err, "mcpServers") {
			t.Errorf("%v: %s", args, got.err)
		}
	}
	b.cli("gateway", "--stdio")
	b.cli("gateway", "--stdio", "--alone")
	if _, err := os.Stat(mark); err == nil {
		t.Fatal("a program of the repository ran")
	}
	if got := b.want(0, "trust"); !strings.Contains(got.out, "mcpServers, director") {
		t.Errorf("%s", got.out)
	}
	p := b.serve("director", "--addr", "127.0.0.1:0", "--data", b.data)
	b.until("the trusted program has run", func() bool { _, err := os.Stat(mark); return err == nil })
	p.stop()
	if err := os.Chmod(filepath.Join(b.work, "signalbox.yaml"), 0o666); err != nil {
		t.Fatal(err)
	}
	if got := b.want(2, "director", "--addr", "127.0.0.1:0", "--data", b.data); !strings.Contains(got.err, "can write to it") {
		t.Errorf("%s", got.err)
	}
}

// An agent that up restarts reads the file by the same rule, not as an
// explicitly named file.
func TestAnAgentOfUpIsNotStartedAgainByAnUntrustedFile(t *testing.T) {
	b := newBox(t)
	b.file("work/signalbox.yaml", "agent: {task_env: [CALENDAR_*]}\n", 0o600)
	b.want(0, "trust")
	up := b.up("--agents", "demo")
	c := b.client(up.url)
	b.completed(c, b.submit(c, prompt("x")))
	b.file("work/signalbox.yaml", "agent: {task_env: [LD_*]}\n", 0o600)
	folder := filepath.Join(b.data, "agents", "demo")
	var file struct{ PID int }
	if err := json.Unmarshal([]byte(b.read(filepath.Join(folder, "agent.json"))), &file); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Kill(file.PID, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	b.until("the agent is refused the file", func() bool {
		return strings.Contains(b.read(filepath.Join(folder, "agent.log")), "signalbox trust")
	})
	id := b.submit(c, prompt("x"))
	b.want(0, "trust")
	b.completed(c, id)
}
