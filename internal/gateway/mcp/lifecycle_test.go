package mcp_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/internal/gateway"
	"github.com/signalbox-ai/signalbox/internal/gateway/mcp"
	"github.com/signalbox-ai/signalbox/internal/testkit"
	"github.com/signalbox-ai/signalbox/internal/toolconf"
)

// waitFor waits for a line in a file.
func waitFor(t *testing.T, file, line string) {
	t.Helper()
	testkit.Wait(t, fmt.Sprintf("%q is in %s", line, file), func() bool {
		b, _ := os.ReadFile(file)
		return slices.Contains(strings.Split(string(b), "\n"), line)
	})
}

// gone reports whether a process has ended.
func gone(pid int) bool { return free(pid) || zombie(pid) }

func zombie(pid int) bool {
	b, err := os.ReadFile("/proc/" + json.Number(itoa(pid)).String() + "/stat")
	return err == nil && strings.Contains(string(b), ") Z ")
}

func itoa(n int) string { b, _ := json.Marshal(n); return string(b) }

// A server is reported ready only once its tools can be called. Earlier, a caller
// that waited for ready could be told that the tool does not exist.
func TestToolsAreListedBeforeServerIsReady(t *testing.T) {
	p := mcp.New(child("raw"), mcp.Options{})
	states := make(chan gateway.State, 10) // the server's states at each notification of changed tools
	if err := p.Start(context.Background(), func() { states <- p.Server().State }); err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	for _, want := range []gateway.State{gateway.StateStarting, gateway.StateReady} {
		select {
		case got := <-states:
			if got != want {
				t.Errorf("its tools are reported while it is %s, want %s", got, want)
			}
		case <-time.After(soon):
			t.Fatalf("its tools were not reported while it was %s", want)
		}
	}
}

// TestIncidentServerDiesMidCall: the call fails at once with the cause, the
// server is restarted, and the secret in its last output is masked.
func TestIncidentServerDiesMidCall(t *testing.T) {
	notes := filepath.Join(t.TempDir(), "notes")
	h := ready(t, child("raw", "API_KEY=hunter2hunter2", notesVar+"="+notes), mcp.Options{})
	beside := make(chan error, 1)
	go func() {
		_, err := h.call("a", do("silent", nil))
		beside <- err
	}()
	waitFor(t, notes, "begun")
	msg := h.fails(signalbox.CodeToolLost, "a", do("die", nil))
	if !strings.Contains(msg, "went away during the call") || !strings.Contains(msg, "out of ideas, key [hidden]") {
		t.Error(msg)
	}
	if err := <-beside; signalbox.CodeOf(err) != signalbox.CodeToolLost {
		t.Errorf("the call beside it: %v", err)
	}
	h.must("a", do("args", nil)) // waits for the restart
	if s := h.Server(); s.Restarts != 1 || s.State != gateway.StateReady || s.Error != "" {
		t.Errorf("afterwards %+v", s)
	}
	if strings.Contains(h.log.String(), "hunter2") {
		t.Error("a secret is in the log")
	}
}

func TestStartErrorIsReported(t *testing.T) {
	h := start(t, child("refuses", "API_KEY=hunter2hunter2"), mcp.Options{Backoff: time.Hour})
	s := h.until(func(s gateway.Server) bool { return s.State == gateway.StateFailed })
	if !strings.Contains(s.Error, "exit status 3") || !strings.Contains(s.Error, "cannot open the key [hidden]") {
		t.Error(s.Error)
	}
	arg := toolconf.Server{Name: "srv", Transport: toolconf.Stdio, Shared: true, Command: "/bin/sh", Secrets: []string{"hunter2hunter2"},
		Args: []string{"-c", `echo "cannot open $1" >&2; exit 3`, "sh", "--url=db://user:hunter2hunter2@host"}}
	h = start(t, arg, mcp.Options{Backoff: time.Hour})
	s = h.until(func(s gateway.Server) bool { return s.State == gateway.StateFailed })
	if !strings.Contains(s.Error, "--url=db://user:[hidden]@host") || strings.Contains(h.log.String(), "hunter2") {
		t.Errorf("%s\n%s", s.Error, h.log)
	}
	none := child("sdk")
	none.Command = "/no/such/program"
	h = start(t, none, mcp.Options{Backoff: time.Hour})
	s = h.until(func(s gateway.Server) bool { return s.State == gateway.StateFailed })
	if !strings.Contains(s.Error, `the program "/no/such/program" could not be started: no such file`) {
		t.Error(s.Error)
	}
	h = start(t, toolconf.Server{Name: "srv", Transport: toolconf.HTTP, URL: "http://127.0.0.1:1/?key=hunter2hunter2", Shared: true}, mcp.Options{Backoff: time.Hour})
	s = h.until(func(s gateway.Server) bool { return s.State == gateway.StateFailed })
	if !strings.Contains(s.Error, "connection refused") || strings.Contains(s.Error, "hunter2") {
		t.Error(s.Error)
	}
}

func TestServerThatCrashesOnNewProtocolGetsOldOne(t *testing.T) {
	t.Parallel()
	h := ready(t, child("bare"), mcp.Options{})
	h.must("a", do("args", nil))
}

// TestIncidentChildrenOutliveServer: every process that a server started ends
// with it, even one that left its process group or session.
func TestIncidentChildrenOutliveServer(t *testing.T) {
	t.Parallel()
	h := ready(t, child("family"), mcp.Options{})
	pids := h.until(func(s gateway.Server) bool { return len(s.PIDs) == 3 }).PIDs
	if err := h.Close(); err != nil {
		t.Fatal(err)
	}
	for _, pid := range pids {
		if !gone(pid) {
			t.Errorf("process %d lives on", pid)
		}
	}
	if s := h.Server(); s.State != gateway.StateStopped || len(s.PIDs) != 0 {
		t.Errorf("afterwards %+v", s)
	}
}

func TestServerIgnoringSIGTERMIsKilled(t *testing.T) {
	t.Parallel()
	h := ready(t, child("stubborn"), mcp.Options{})
	pids := h.Server().PIDs
	begin := time.Now()
	if err := h.Close(); err != nil || len(pids) != 1 || !gone(pids[0]) {
		t.Errorf("close: %v, processes %v", err, pids)
	}
	if d := time.Since(begin); d < 4*time.Second {
		t.Errorf("it had %v, want 2 s for its stdin and 3 s for SIGTERM", d)
	}
}

// TestHealthProbeRestartsHangingServer: the server is restarted after two
// probes without an answer.
func TestHealthProbeRestartsHangingServer(t *testing.T) {
	t.Parallel()
	for _, probe := range []string{"ping", "listTools"} {
		t.Run(probe, func(t *testing.T) {
			t.Parallel()
			s := child("sdk")
			s.HealthProbe = probe
			h := ready(t, s, mcp.Options{ProbeEvery: 20 * time.Millisecond, ProbeTimeout: 2 * time.Second})
			pid := h.Server().PIDs[0]
			if err := freeze(pid); err != nil {
				t.Fatal(err)
			}
			h.until(func(s gateway.Server) bool { return s.Restarts >= 1 && s.State == gateway.StateReady })
			if !gone(pid) {
				t.Error("the hung server is still alive")
			}
			if !strings.Contains(h.log.String(), "does not answer its health probe") {
				t.Error("the log does not say why")
			}
			h.must("echo", `{"text":"x"}`)
		})
	}
}

// TestCallWithoutAnswerTriggersProbe: the probe runs even while other calls
// are in flight, which otherwise count as a sign of life.
func TestCallWithoutAnswerTriggersProbe(t *testing.T) {
	t.Parallel()
	h := ready(t, child("sdk"), mcp.Options{ProbeEvery: time.Hour, ProbeTimeout: 500 * time.Millisecond})
	file, other := t.TempDir()+"/notes", make(chan error, 1)
	go func() {
		_, err := h.call("hang", `{"text":`+fmt.Sprintf("%q", file)+`}`)
		other <- err
	}()
	waitFor(t, file, "begun")
	if err := freeze(h.Server().PIDs[0]); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(h.ctx(), 50*time.Millisecond)
	defer cancel()
	if _, err := h.Call(ctx, gateway.Call{Tool: "srv__echo", Arguments: json.RawMessage(`{"text":"x"}`)}); !errors.Is(err, context.DeadlineExceeded) {
		t.Fatal(err)
	}
	h.until(func(s gateway.Server) bool { return s.Restarts >= 1 && s.State == gateway.StateReady })
	if err := <-other; err == nil {
		t.Error("the call to the server that hung was answered")
	}
}

func TestProgramEnvironmentIsMinimal(t *testing.T) {
	t.Setenv("SIGNALBOX_TOKEN", "top-secret")
	t.Setenv("AWS_SECRET_ACCESS_KEY", "top-secret")
	h := ready(t, child("raw", "MINE=yes"), mcp.Options{})
	r := h.must("a", do("env", nil))
	if got := string(r.Structured); strings.Contains(got, "top-secret") || !strings.Contains(got, "MINE=yes") || !strings.Contains(got, "PATH=") {
		t.Errorf("environment %s", got)
	}
}

func TestChangedToolsAreRelisted(t *testing.T) {
	for _, kind := range []string{"stdio", "http", "http-new", "sse", "websocket"} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			s := child("sdk")
			if kind != "stdio" {
				s = webServer(t, kind)
			}
			h := ready(t, s, mcp.Options{})
			<-h.changed // its tools are listed
			<-h.changed // it is ready
			h.must("grow", `{}`)
			select {
			case <-h.changed:
			case <-time.After(soon):
				t.Fatal("the change was not reported")
			}
			if r := h.must("grown", `{}`); !strings.Contains(string(r.Content), "I am new") {
				t.Errorf("%s", r.Content)
			}
		})
	}
}
