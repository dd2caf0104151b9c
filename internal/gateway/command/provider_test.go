//go:build unix

package command_test

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/internal/command"
	"github.com/signalbox-ai/signalbox/internal/gateway"
	provider "github.com/signalbox-ai/signalbox/internal/gateway/command"
	"github.com/signalbox-ai/signalbox/internal/gateway/providertest"
	"github.com/signalbox-ai/signalbox/internal/testkit"
	"github.com/signalbox-ai/signalbox/internal/toolconf"
)

// script writes a program.
func script(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "tool.sh")
	if err := os.WriteFile(path, []byte("#!/bin/sh\n"+text), 0o755); err != nil {
		t.Fatal(err)
	}
	return path
}

func tool(t *testing.T, c toolconf.CommandTool) *command.Tool {
	t.Helper()
	if c.Cwd == "" {
		c.Cwd = t.TempDir()
	}
	made, err := command.New(c, command.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return made
}

func open(t *testing.T, conf ...toolconf.CommandTool) gateway.Provider {
	t.Helper()
	var tools []*command.Tool
	for _, c := range conf {
		tools = append(tools, tool(t, c))
	}
	p := provider.New(tools, provider.Options{})
	t.Cleanup(func() {
		if err := p.Close(); err != nil {
			t.Error(err)
		}
	})
	return p
}

// pipe is a FIFO to which a program reports its progress.
func pipe(t *testing.T) (path string, said func(t *testing.T) string) {
	t.Helper()
	path = filepath.Join(t.TempDir(), "pipe")
	if err := syscall.Mkfifo(path, 0o600); err != nil {
		t.Fatal(err)
	}
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	return path, func(t *testing.T) string {
		t.Helper()
		_ = f.SetReadDeadline(time.Now().Add(time.Minute))
		b := make([]byte, 256)
		n, err := f.Read(b)
		if err != nil {
			t.Fatalf("the program said nothing: %v", err)
		}
		return strings.TrimSpace(string(b[:n]))
	}
}

func TestProvider(t *testing.T) {
	providertest.Run(t, func(t *testing.T) providertest.Fixture {
		path, said := pipe(t)
		p := provider.New([]*command.Tool{
			tool(t, toolconf.CommandTool{Name: "echo", Command: script(t, "cat\n"), Async: true}),
			tool(t, toolconf.CommandTool{Name: "hang", Command: script(t, "echo begun > "+path+"\nwhile :; do /bin/sleep 1; done\n"), Timeout: time.Minute, Queue: "slow"}),
		}, provider.Options{})
		return providertest.Fixture{
			Provider: p, Answers: "echo", Hangs: "hang",
			Hanging: func(t *testing.T) { said(t) },
			Gone:    func() bool { return len(p.Server().PIDs) == 0 },
		}
	})
}

func TestToolsAreAsDeclared(t *testing.T) {
	p := open(t,
		toolconf.CommandTool{
			Name: "report", Title: "The report", Description: "makes <it>", Command: "/bin/true", Async: true, Timeout: time.Hour,
			InputSchema: []byte(`{"type": "object", "properties": {"pin": {"type": "string", "writeOnly": true}}}`),
			Secrets:     []string{"key"}, Restart: toolconf.Restart{Pending: "fail", Running: "requeue"},
		},
		toolconf.CommandTool{Name: "now", Command: "/bin/true", Queue: "q", Restart: toolconf.Restart{Pending: "keep", Running: "fail"}},
	)
	tools := p.Tools()
	if len(tools) != 2 || tools[0].Name != "now" || tools[1].Name != "report" {
		t.Fatalf("%+v", tools)
	}
	now, report := tools[0], tools[1]
	if now.Queue != "q" || now.Timeout != gateway.DefaultTimeout || now.Async || now.Kind != gateway.KindCommand || now.Server != "commands" || now.Restart != (gateway.RestartPolicy{}) {
		t.Errorf("%+v", now)
	}
	if report.Queue != "" || report.Timeout != time.Hour || !report.Async || report.Restart != (gateway.RestartPolicy{FailPending: true, RequeueRunning: true}) {
		t.Errorf("%+v", report)
	}
	if got := strings.Join(report.Secrets, " "); got != "key pin" {
		t.Errorf("secrets: %s", got)
	}
	var def map[string]any
	if err := json.Unmarshal(report.Definition, &def); err != nil {
		t.Fatal(err)
	}
	if def["name"] != "report" || def["title"] != "The report" || def["description"] != "makes <it>" || def["inputSchema"].(map[string]any)["type"] != "object" {
		t.Errorf("%s", report.Definition)
	}
}

func TestTaskCallMetadataAndRunEnd(t *testing.T) {
	p := open(t, toolconf.CommandTool{Name: "t", Command: script(t, "cat\necho $SIGNALBOX_RUN\nexit 3\n")})
	var log []string
	r, err := p.Call(t.Context(), gateway.Call{
		Tool: "t", Task: "queue-1", Mark: "mark-1", Arguments: json.RawMessage(`{"a": 1}`), Meta: json.RawMessage(`{"m": 2}`),
		Log: func(stream string, text []byte) { log = append(log, stream+": "+string(text)) },
	})
	if err != nil || !r.IsError || r.Run == nil || r.Run.Reason != signalbox.ReasonExitNonzero || *r.Run.ExitCode != 3 || r.Run.Alive != nil {
		t.Fatalf("%+v, %+v, %v", r, r.Run, err)
	}
	want := "stdout: {\"tool\":\"t\",\"input\":{\"a\":1},\"metadata\":{\"m\":2},\"taskId\":\"queue-1\"}\n"
	if got := strings.Join(log, ""); !strings.HasPrefix(got, want) || !strings.Contains(got, "mark-1") {
		t.Errorf("it printed %q", got)
	}
	if got := string(r.Content); got != `[{"type":"text","text":"command exited with code 3"}]` {
		t.Errorf("%s", got)
	}
	if got := string(r.Metadata); got != `{"agent":"t"}` {
		t.Errorf("%s", got)
	}
}

// TestCallLimit: the limit of the task, of the tool and the deadline of the call all give the
// seed's error text.
func TestCallLimit(t *testing.T) {
	p := open(t, toolconf.CommandTool{Name: "t", Command: script(t, "exec /bin/sleep 60\n"), Timeout: time.Minute})
	r, err := p.Call(t.Context(), gateway.Call{Tool: "t", Task: "queue-1", Limit: 50 * time.Millisecond})
	if err != nil || r.Run.Reason != signalbox.ReasonRunTimeout || r.Run.Message != "Task timed out after 50ms" {
		t.Fatalf("%+v, %v", r.Run, err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	r, err = p.Call(ctx, gateway.Call{Tool: "t", Task: "queue-2"})
	if err != nil || r.Run.Reason != signalbox.ReasonRunTimeout || r.Run.Message != "Task timed out after 60000ms" {
		t.Fatalf("%+v, %v", r.Run, err)
	}
}

func TestCloseCancelsTaskRuns(t *testing.T) {
	path, said := pipe(t)
	p := open(t, toolconf.CommandTool{Name: "t", Async: true, Command: script(t, "trap '' TERM\necho $$ > "+path+"\nwhile :; do /bin/sleep 1; done\n")})
	type answer struct {
		r   gateway.Result
		err error
	}
	done := make(chan answer, 1)
	go func() {
		r, err := p.Call(context.WithoutCancel(t.Context()), gateway.Call{Tool: "t", Task: "queue-1"})
		done <- answer{r, err}
	}()
	said(t)
	var pids []int
	testkit.Wait(t, "the server has a process", func() bool { // the server may see its start later than its output
		pids = p.Server().PIDs
		return len(pids) > 0
	})
	pid := pids[0]
	if err := p.Close(); err != nil {
		t.Fatal(err)
	}
	if a := <-done; a.err != nil || a.r.Run.Reason != signalbox.ReasonCancelled || !a.r.IsError {
		t.Errorf("%+v, %v", a.r.Run, a.err)
	}
	if syscall.Kill(pid, 0) == nil {
		t.Errorf("process %d lives on", pid)
	}
	if _, err := p.Call(t.Context(), gateway.Call{Tool: "t"}); signalbox.CodeOf(err) != signalbox.CodeUnavailable {
		t.Errorf("%v", err)
	}
}

func TestCheck(t *testing.T) {
	p := open(t, toolconf.CommandTool{Name: "t", Command: "/bin/true", InputSchema: []byte(`{"type":"object","required":["n"]}`)}).(gateway.Checker)
	if err := p.Check(gateway.Call{Tool: "t"}); signalbox.CodeOf(err) != signalbox.CodeValidation {
		t.Errorf("%v", err)
	}
	if err := p.Check(gateway.Call{Tool: "t", Arguments: json.RawMessage(`{"n":1}`)}); err != nil {
		t.Error(err)
	}
	if err := p.Check(gateway.Call{Tool: "none"}); signalbox.CodeOf(err) != signalbox.CodeNotFound {
		t.Errorf("%v", err)
	}
}
