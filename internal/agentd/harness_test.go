package agentd_test

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/signalbox-ai/signalbox/api"
	"github.com/signalbox-ai/signalbox/internal/agentd"
	"github.com/signalbox-ai/signalbox/internal/proc"
)

// long bounds every wait of a test; no wait should take that long. A coding CLI
// starts in two seconds, but in a minute if many others start at the same time.
const long = 3 * time.Minute

func TestMain(m *testing.M) {
	if helper() {
		return
	}
	goleak.VerifyTestMain(m, goleak.IgnoreTopFunction("github.com/signalbox-ai/signalbox/internal/proc.keptThread")) // lives as long as the process
}

// agent is a daemon behind a real listener.
type agent struct {
	t      *testing.T
	cfg    agentd.Config
	daemon *agentd.Daemon
	url    string
	client *http.Client
	stop   func()
}

// config returns the configuration of a daemon with folders of its own.
func config(t *testing.T, kind string) agentd.Config {
	t.Helper()
	root := t.TempDir()
	for _, d := range []string{"work", "home", "data"} {
		if err := os.Mkdir(filepath.Join(root, d), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	return agentd.Config{
		Kind: kind, DataDir: filepath.Join(root, "data"), WorkDir: filepath.Join(root, "work"), Home: filepath.Join(root, "home"),
		KillGrace: 200 * time.Millisecond, ExecLog: filepath.Join(root, "exec.jsonl"),
		// With the race detector, programs linger for a second when they exit.
		PassEnv: []string{"GORACE"},
		Environ: []string{"GORACE=atexit_sleep_ms=0", "PATH=" + os.Getenv("PATH"), "HOME=" + filepath.Join(root, "home"), "SECRET_OF_DAEMON=hidden"},
		// Wait for the end, however busy the machine is; later the answer would be
		// 202.
		CancelWait: long,
		Logger:     slog.New(slog.NewTextHandler(testWriter{t}, nil)),
	}
}

type testWriter struct{ t *testing.T }

func (w testWriter) Write(b []byte) (int, error) {
	w.t.Logf("daemon: %s", bytes.TrimSpace(b))
	return len(b), nil
}

// command configures runs that execute this test binary in the given role.
func command(t *testing.T, role string, args ...string) agentd.Config {
	t.Helper()
	cfg := config(t, "command")
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cfg.Runner.Command = append([]string{exe, helperFlag + role}, args...)
	return cfg
}

func start(t *testing.T, cfg agentd.Config) *agent {
	t.Helper()
	d, err := agentd.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	served := make(chan error, 1)
	go func() { served <- d.Serve(ctx, ln) }()
	tr := &http.Transport{}
	a := &agent{t: t, cfg: cfg, daemon: d, url: "http://" + ln.Addr().String(), client: &http.Client{Transport: tr}}
	stopped := false
	a.stop = func() {
		if stopped {
			return
		}
		stopped = true
		cancel()
		if err := <-served; err != nil {
			t.Errorf("serve: %v", err)
		}
		tr.CloseIdleConnections()
	}
	t.Cleanup(a.stop)
	return a
}

// do makes a request and decodes the answer into into, unless that is nil.
func (a *agent) do(method, path string, body, into any) int {
	a.t.Helper()
	var rd io.Reader
	if body != nil {
		b, err := json.Marshal(body)
		if err != nil {
			a.t.Fatal(err)
		}
		rd = bytes.NewReader(b)
	}
	req, err := http.NewRequest(method, a.url+path, rd)
	if err != nil {
		a.t.Fatal(err)
	}
	if body != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	if task, ok := body.(api.AgentTask); ok && task.RunToken != "" {
		req.Header.Set(api.RunTokenHeader, task.RunToken)
	}
	if a.cfg.Token != "" {
		req.Header.Set("Authorization", "Bearer "+a.cfg.Token)
	}
	res, err := a.client.Do(req)
	if err != nil {
		a.t.Fatalf("%s %s: %v", method, path, err)
	}
	defer res.Body.Close()
	b, err := io.ReadAll(res.Body)
	if err != nil {
		a.t.Fatal(err)
	}
	if into != nil {
		if err := json.Unmarshal(b, into); err != nil {
			a.t.Fatalf("%s %s answered %q: %v", method, path, b, err)
		}
	}
	return res.StatusCode
}

// submit submits a task that must be accepted.
func (a *agent) submit(task api.AgentTask) api.AgentTaskAccepted {
	a.t.Helper()
	var raw json.RawMessage
	if code := a.do("POST", "/task", task, &raw); code != 201 {
		a.t.Fatalf("POST /task: %d %s", code, raw)
	}
	var acc api.AgentTaskAccepted
	if err := json.Unmarshal(raw, &acc); err != nil {
		a.t.Fatal(err)
	}
	return acc
}

// refused submits a task that must be refused with this status and code.
func (a *agent) refused(task any, status int, code string) api.AgentRefusal {
	a.t.Helper()
	var ref api.AgentRefusal
	got := a.do("POST", "/task", task, &ref)
	if got != status || ref.Error != code || ref.Message == "" {
		a.t.Fatalf("POST /task: %d %+v, want %d %s with a message", got, ref, status, code)
	}
	return ref
}

func (a *agent) get(id string) api.AgentTaskStatus {
	a.t.Helper()
	var s api.AgentTaskStatus
	if code := a.do("GET", "/task/"+id, nil, &s); code != 200 {
		a.t.Fatalf("GET /task/%s: %d", id, code)
	}
	return s
}

// end waits for the end of a task.
func (a *agent) end(id string) api.AgentTaskStatus {
	a.t.Helper()
	s := api.AgentTaskStatus{State: "working"}
	for deadline := time.Now().Add(long); s.State == "working" && time.Now().Before(deadline); {
		if code := a.do("GET", "/task/"+id+"?wait=60s", nil, &s); code != 200 {
			a.t.Fatalf("GET /task/%s: %d", id, code)
		}
	}
	if s.State == "working" {
		a.t.Fatalf("task %s still works: %+v", id, s)
	}
	if s.State != "completed" && (s.Error == nil || s.Error.Message == "" || s.Error.Type == "") {
		a.t.Fatalf("task %s ended as %s without saying why: %+v", id, s.State, s.Error)
	}
	return s
}

// says waits until the output of a task contains the text, and returns the
// whole output.
func (a *agent) says(id, text string) string {
	a.t.Helper()
	var all strings.Builder
	deadline := time.Now().Add(long)
	for after := int64(0); time.Now().Before(deadline); {
		var out api.AgentOutput
		path := "/task/" + id + "/output?wait=10s&after=" + itoa(after)
		if code := a.do("GET", path, nil, &out); code != 200 {
			a.t.Fatalf("GET %s: %d", path, code)
		}
		all.WriteString(out.Text)
		if strings.Contains(all.String(), text) {
			return all.String()
		}
		if out.Done {
			break
		}
		after = out.Next
	}
	a.t.Fatalf("task %s never said %q but %q", id, text, all.String())
	return ""
}

// idle waits until the agent reports all slots free.
func (a *agent) idle() {
	a.t.Helper()
	timeout := time.After(long)
	for {
		ch := a.daemon.Changed()
		if a.daemon.Status().State == "idle" {
			return
		}
		select {
		case <-ch:
		case <-timeout:
			a.t.Fatalf("the agent is not idle: %+v", a.daemon.Status())
		}
	}
}

// gone fails the test if a process of the run is alive.
func gone(t *testing.T, taskID string) {
	t.Helper()
	if pids := proc.Alive(proc.Ident{Mark: taskID}); len(pids) > 0 {
		t.Errorf("processes %v of %s live", pids, taskID)
	}
}

func wantError(t *testing.T, s api.AgentTaskStatus, state, typ, text string) {
	t.Helper()
	if s.State != state || s.Error == nil || s.Error.Type != typ || !strings.Contains(s.Error.Message, text) {
		t.Errorf("task is %s with error %+v, want %s, %s and %q", s.State, s.Error, state, typ, text)
	}
}
