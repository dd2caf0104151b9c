package agentd_test

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/signalbox-ai/signalbox/api"
	"github.com/signalbox-ai/signalbox/internal/agentd"
)

// raw sends a request unchanged, and returns the status and the error code.
func (a *agent) raw(method, path, body string, header map[string]string) (int, api.AgentRefusal) {
	a.t.Helper()
	req, err := http.NewRequest(method, a.url+path, strings.NewReader(body))
	if err != nil {
		a.t.Fatal(err)
	}
	for k, v := range header {
		req.Header.Set(k, v)
		if k == "Host" {
			req.Host = v
		}
	}
	res, err := a.client.Do(req)
	if err != nil {
		a.t.Fatal(err)
	}
	defer res.Body.Close()
	b, _ := io.ReadAll(res.Body)
	var ref api.AgentRefusal
	if err := json.Unmarshal(b, &ref); err != nil {
		a.t.Errorf("%s %s: %d is not JSON: %q", method, path, res.StatusCode, b)
	}
	return res.StatusCode, ref
}

const jsonType = "application/json"

func TestBadInput(t *testing.T) {
	a := start(t, config(t, "demo"))
	long := strings.Repeat("a", 129)
	for _, c := range []struct{ body, names string }{
		{`{}`, "prompt"},
		{`{"prompt":"  "}`, "prompt"},
		{`{"prompt":"a\u0000b"}`, "prompt"},
		{`{"prompt":"x","unknown":1}`, "unknown"},
		{`{"prompt":"x"} {"prompt":"y"}`, "after top-level value"},
		{`{"prompt":"x","prompt":"y"}`, "prompt is given twice"},
		{`{"prompt":"x","project":{"path":"/a","path":"/b"}}`, "project.path is given twice"},
		{`{"prompt":`, "body"},
		{`[]`, "body"},
		{`{"prompt":"x","timeout_seconds":-1}`, "timeout_seconds"},
		{`{"prompt":"x","timeout_seconds":99999999}`, "timeout_seconds"},
		{`{"prompt":"x","session_id":"../../etc/passwd"}`, "session_id"},
		{`{"prompt":"x","session_id":"a..b"}`, "session_id"},
		{`{"prompt":"x","session_id":"--resume"}`, "session_id"},
		{`{"prompt":"x","session_id":"` + long + `"}`, "session_id"},
		{`{"prompt":"x","session_id":"s","isolated":true}`, "session_id"},
		{`{"prompt":"x","model":"--dangerously-skip-permissions"}`, "model"},
		{`{"prompt":"x","queue_id":"../x"}`, "queue_id"},
		{`{"prompt":"x","fence":-1,"queue_id":"q"}`, "fence"},
		{`{"prompt":"x","fence":1}`, "fence"},
		{`{"prompt":"x","slot":-1}`, "slot"},
		{`{"prompt":"x","slot":1}`, "slot"},
	} {
		code, ref := a.raw("POST", "/task", c.body, map[string]string{"Content-Type": jsonType})
		if code != 400 || ref.Error != "validation_error" || !strings.Contains(ref.Message, c.names) {
			t.Errorf("%s: %d %+v, want 400 naming %s", c.body, code, ref, c.names)
		}
	}
	if s := a.daemon.Status(); s.State != "idle" {
		t.Errorf("something runs: %+v", s)
	}
}

func TestUnknownTierIsRefused(t *testing.T) {
	cfg := config(t, "claude")
	cfg.Runner.Tiers = map[string]string{"huge": "opus"}
	a := start(t, cfg)
	ref := a.refused(api.AgentTask{Prompt: "x", Tier: "tiny"}, 400, "validation_error")
	for _, tier := range []string{"fast", "standard", "heavy", "huge"} {
		if !strings.Contains(ref.Message, tier) {
			t.Errorf("%q does not name %s", ref.Message, tier)
		}
	}
}

// A task may not set a variable that decides which code runs, or where the
// agent's own credentials are sent.
func TestDangerousEnvIsRefused(t *testing.T) {
	a := start(t, command(t, "env"))
	for _, name := range []string{
		"LD_PRELOAD", "LD_LIBRARY_PATH", "DYLD_INSERT_LIBRARIES", "PATH", "HOME", "NODE_OPTIONS", "BASH_ENV", "ENV", "PYTHONPATH", "GIT_SSH_COMMAND",
		"ANTHROPIC_BASE_URL", "OPENAI_BASE_URL", "HTTPS_PROXY", "https_proxy", "NODE_TLS_REJECT_UNAUTHORIZED", "SIGNALBOX_RUN", "XDG_CONFIG_HOME",
		"CLAUDE_CONFIG_DIR", "CODEX_HOME", "OPENCODE_CONFIG_CONTENT", "CLAUDE_CODE_SHELL_PREFIX", "BASH_FUNC_ls%%", "A=B", "", "1A", "A B",
	} {
		ref := a.refused(api.AgentTask{Prompt: "x", Env: map[string]string{name: "v"}}, 400, "validation_error")
		if !strings.Contains(ref.Message, "env") || !strings.Contains(ref.Message, name) {
			t.Errorf("%q is not named in %q", name, ref.Message)
		}
	}
	a.refused(api.AgentTask{Prompt: "x", Env: map[string]string{"A": "b\x00c"}}, 400, "validation_error")
	s := a.end(a.submit(api.AgentTask{Prompt: "x", Env: map[string]string{"MINE": "yes", "OPENAI_API_KEY": "own", "APP_BASE_URL": "http://x"}}).TaskID)
	if !strings.Contains(s.Output, "MINE=yes\n") || !strings.Contains(s.Output, "PATH=") || !strings.Contains(s.Output, "HOME="+a.cfg.Home+"\n") {
		t.Errorf("environment: %s", s.Output)
	}
	if strings.Contains(s.Output, "SECRET_OF_DAEMON") {
		t.Error("the daemon's own environment reached the run")
	}
}

func TestProjectCannotEscapeRoots(t *testing.T) {
	cfg := command(t, "pwd")
	outside := t.TempDir()
	for link, target := range map[string]string{"escape": outside, "etc": "/etc"} {
		if err := os.Symlink(target, filepath.Join(cfg.WorkDir, link)); err != nil {
			t.Fatal(err)
		}
	}
	sibling := cfg.WorkDir + "-sibling"
	if err := os.Mkdir(sibling, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(cfg.WorkDir, "file"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	a := start(t, cfg)
	for _, path := range []string{"..", "../", "/", "/etc", outside, sibling, "escape", "etc", "./../home", "missing", "file", "a\x00b"} {
		ref := a.refused(api.AgentTask{Prompt: "x", Project: &api.Project{Path: path}}, 400, "validation_error")
		if !strings.Contains(ref.Message, "project.path") {
			t.Errorf("%q: %s", path, ref.Message)
		}
	}
}

func TestBodyLimit(t *testing.T) {
	cfg := config(t, "demo")
	cfg.BodyLimit = 4096
	a := start(t, cfg)
	a.refused(api.AgentTask{Prompt: strings.Repeat("x", 5000)}, 413, "too_large")
}

func TestContentTypeIsRequired(t *testing.T) {
	a := start(t, config(t, "demo"))
	for _, typ := range []string{"", "text/plain", "application/x-www-form-urlencoded", "application/jsonx"} {
		if code, _ := a.raw("POST", "/task", `{"prompt":"x"}`, map[string]string{"Content-Type": typ}); code != 415 {
			t.Errorf("%q: %d", typ, code)
		}
	}
	if code, _ := a.raw("POST", "/task", `{"prompt":"sleep 1ms"}`, map[string]string{"Content-Type": "application/json; charset=utf-8"}); code != 201 {
		t.Errorf("with a charset: %d", code)
	}
}

// A page on another site, by name (DNS rebinding) or by fetch.
func TestCrossOriginIsRefused(t *testing.T) {
	cfg := config(t, "demo")
	cfg.Hosts = []string{"agent.internal"}
	a := start(t, cfg)
	for _, host := range []string{"evil.example", "localhost.evil.example", "127.0.0.1.evil.example", "10.0.0.1:9000", "[::1%25lo].evil.example", ""} {
		if code, ref := a.raw("GET", "/status", "", map[string]string{"Host": host}); host != "" && (code != 403 || ref.Error != "host_not_allowed") {
			t.Errorf("Host %q: %d %+v", host, code, ref)
		}
	}
	for _, host := range []string{"localhost", "localhost:9000", "127.0.0.1:9000", "[::1]:9000", "LOCALHOST", "agent.internal:9000"} {
		if code, _ := a.raw("GET", "/status", "", map[string]string{"Host": host}); code != 200 {
			t.Errorf("Host %q: %d", host, code)
		}
	}
	for _, h := range []map[string]string{{"Sec-Fetch-Site": "cross-site"}, {"Sec-Fetch-Site": "same-site"}, {"Origin": "https://evil.example"}} {
		h["Content-Type"] = jsonType
		for _, path := range []string{"/task", "/shutdown", "/task/x/cancel"} {
			if code, _ := a.raw("POST", path, `{"prompt":"x"}`, h); code != 403 {
				t.Errorf("%v %s: %d", h, path, code)
			}
		}
	}
}

func TestTokenGuardsEveryPath(t *testing.T) {
	cfg := config(t, "demo")
	cfg.Token = "right-token"
	a := start(t, cfg)
	for _, route := range []string{"POST /task", "GET /task/x", "POST /task/x/cancel", "GET /task/x/output", "GET /status", "GET /history", "GET /history/x", "GET /sessions", "GET /terminal", "POST /shutdown", "GET /", "GET /nope"} {
		method, path, _ := strings.Cut(route, " ")
		for _, auth := range []string{"", "Bearer", "Bearer ", "Bearer wrong", "Bearer right-tokenn", "Bearer right-toke", "Basic right-token", "right-token"} {
			code, ref := a.raw(method, path, "", map[string]string{"Authorization": auth, "Content-Type": jsonType})
			if code != 401 || ref.Error != "unauthorized" || strings.Contains(ref.Message, "right") {
				t.Errorf("%s with %q: %d %+v", route, auth, code, ref)
			}
		}
	}
	if code := a.do("GET", "/status", nil, nil); code != 200 {
		t.Errorf("with the token: %d", code)
	}
}

func TestPublicAddressNeedsToken(t *testing.T) {
	for _, addr := range []string{"0.0.0.0:0", "[::]:0"} {
		ln, err := net.Listen("tcp", addr)
		if err != nil {
			t.Logf("%s: %v", addr, err)
			continue
		}
		d, err := agentd.New(config(t, "demo"))
		if err != nil {
			t.Fatal(err)
		}
		if err := d.Serve(t.Context(), ln); err == nil || !strings.Contains(err.Error(), "token") {
			t.Errorf("%s without a token: %v", addr, err)
		}
		if _, err := net.Dial("tcp", ln.Addr().String()); err == nil {
			t.Errorf("%s still listens", addr)
		}
		d.Close()
	}
}

func TestUnknownPathsAndMethods(t *testing.T) {
	a := start(t, config(t, "demo"))
	for route, want := range map[string]int{
		"GET /": 404, "GET /nope": 404, "GET /task": 405, "DELETE /status": 405, "PUT /task": 405, "GET /task/x": 404, "GET /task/x/output": 404,
		"GET /task/..%2f..%2fetc%2fpasswd": 404,
	} {
		method, path, _ := strings.Cut(route, " ")
		if code, ref := a.raw(method, path, "", nil); code != want || ref.Error == "" || ref.Message == "" {
			t.Errorf("%s: %d %+v, want %d", route, code, ref, want)
		}
	}
}

// A client that never ends its header or body is cut off.
func TestSlowClientsAreCutOff(t *testing.T) {
	if testing.Short() {
		t.Skip("waits for the header timeout of 5 s")
	}
	t.Parallel()
	a := start(t, config(t, "demo"))
	conn, err := net.Dial("tcp", strings.TrimPrefix(a.url, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	fmt.Fprint(conn, "GET /status HTTP/1.1\r\nHost: localhost\r\nX-Slow:")
	_ = conn.SetReadDeadline(time.Now().Add(long))
	var buf bytes.Buffer
	if _, err := io.Copy(&buf, bufio.NewReader(conn)); err != nil {
		t.Errorf("not cut off: %v", err)
	}
}
