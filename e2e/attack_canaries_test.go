package e2e_test

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/signalbox-ai/signalbox/api"
)

// canaries are secrets of every kind that a director is given, each planted
// where it belongs.
var canaries = map[string]string{
	"the static token":            "canary-static-01-0123456789abcdef",
	"a value of a task's env":     "canary-env-02-0123456789abcdef",
	"a header of a REST tool":     "canary-header-03-0123456789abcdef",
	"a variable of a tool":        "canary-variable-04-0123456789abcdef",
	"a secret argument":           "canary-argument-05-0123456789abcdef",
	"a password":                  "canary-password-06-0123456789abcdef",
	"a header of the collector":   "canary-collector-07-0123456789abcdef",
	"an agent's own token":        "canary-agent-08-0123456789abcdef",
	"the password of a store URL": "canary-store-09-0123456789abcdef",
	"an unrelated variable":       "canary-unrelated-10-0123456789abcdef",
}

// heard is what an external server was sent.
type heard struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (h *heard) String() string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.text.String()
}

// worstUpstream is the worst upstream: it keeps what it is sent, and echoes it in
// its answers.
func worstUpstream(t *testing.T) (string, *heard) {
	h := &heard{}
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		h.mu.Lock()
		fmt.Fprintf(&h.text, "%s %s %v %s\n", r.Method, r.URL, r.Header, body)
		h.mu.Unlock()
		fmt.Fprintf(w, "%v", r.Header)
	}))
	t.Cleanup(s.Close)
	return s.URL, h
}

// Secrets of every kind are planted, used and searched for in every sink: all
// files, all answers of all routes, logs, spans, what a tool's server is sent
// about its caller, the environment of programs and the arguments of
// processes.
func TestAttackCanariesInEverySink(t *testing.T) {
	b := newBox(t)
	upstream, sent := worstUpstream(t)
	collector, spans := worstUpstream(t)
	dump := b.file("dump.sh", "#!/bin/sh\n/usr/bin/env\n/bin/cat >/dev/null\n", 0o700)
	tools := b.toolFile("tools.json", object{
		"restTools":    object{"far": object{"description": "d", "method": "GET", "url": upstream, "headers": object{"X-Key": "${FAR_KEY}"}}},
		"commandTools": object{"dump": object{"command": dump, "secrets": []string{"pass"}, "env": object{"MINE": "${FAR_KEY2}"}}},
	})
	b.vars["SIGNALBOX_TOKEN"] = canaries["the static token"]
	b.vars["FAR_KEY"], b.vars["FAR_KEY2"] = canaries["a header of a REST tool"], canaries["a variable of a tool"]
	b.vars["OTEL_EXPORTER_OTLP_ENDPOINT"], b.vars["OTEL_EXPORTER_OTLP_HEADERS"] = collector, "X-Collector="+canaries["a header of the collector"]
	b.vars["OTEL_BSP_SCHEDULE_DELAY"] = "20"
	b.vars["UNRELATED_SECRET"] = canaries["an unrelated variable"]
	addr := freePort(t)
	director := b.director("--addr", addr, "--tools", tools, "--log-level", "debug")
	b.vars["SIGNALBOX_AGENT_TOKEN"] = canaries["an agent's own token"]
	agent := b.agent("worker", director.url, "--log-level", "debug", "--", "/bin/sh", dump)
	delete(b.vars, "SIGNALBOX_AGENT_TOKEN")
	c := b.client(director.url)
	b.untilState(c, "worker", "idle")
	auth := []string{"Authorization", "Bearer " + canaries["the static token"]}

	// Use them all.
	id := b.submit(c, api.SubmitRequest{Prompt: "use it", Env: map[string]string{"OWN": canaries["a value of a task's env"]}})
	ran := b.completed(c, id).Result.Output
	put, told := b.ask("PUT", director.url+"/api/users/anna", `{"role":"admin","password":"`+canaries["a password"]+`"}`, auth...)
	if put != http.StatusOK {
		t.Fatal(told)
	}
	if code, said := b.ask("POST", director.url+"/api/login", `{"user":"anna","password":"`+canaries["a password"]+`"}`); code != http.StatusOK {
		t.Fatal(said)
	}
	made := parse[api.TokenCreated](t, b.want(0, "tokens", "create", "ci", "--scope", "read", "--json").out)
	var answers strings.Builder
	answers.WriteString(told)
	code, said := b.ask("POST", director.url+"/api/tools/rest__far/call", `{"arguments":{}}`, auth...)
	if code != http.StatusOK || sent.String() == "" {
		t.Fatalf("the tool was not called: %d %s", code, said)
	}
	answers.WriteString(said)
	code, said = b.ask("POST", director.url+"/api/tools/dump/call", `{"arguments":{"pass":"`+canaries["a secret argument"]+`"}}`, auth...)
	if code != http.StatusOK || !strings.Contains(said, "MINE=***") {
		t.Fatalf("%d %s", code, said)
	}
	answers.WriteString(said)

	// The sinks.
	b.until("spans are sent", func() bool { return spans.String() != "" })
	read := 0
	for _, route := range api.Routes() {
		if route.Method != http.MethodGet || strings.HasPrefix(route.Media, "text/event-stream") || route.Name == "events" || route.Name == "mcpStream" || route.Name == "terminal" {
			continue
		}
		path := strings.NewReplacer("{id}", id, "{name}", "worker", "{part}", "k2", "{path...}", "", "{$}", "").Replace(route.Path)
		_, said := b.ask("GET", director.url+path+"?limit=100", "", auth...)
		answers.WriteString(said)
		read++
	}
	if read < 30 {
		t.Errorf("only %d routes were read", read)
	}
	for _, args := range [][]string{{"doctor"}, {"status", id}, {"logs", id}, {"audit"}, {"whoami"}, {"tokens"}, {"users"}, {"why", id}} {
		got := b.cli(args...)
		answers.WriteString(got.out + got.err)
	}
	// The agent's program printed the task's env, so everybody who may read the
	// task sees it.
	if !strings.Contains(ran, canaries["a value of a task's env"]) {
		t.Errorf("the program was not given the task's env: %s", ran)
	}
	all := map[string]string{
		"an answer":                            strings.ReplaceAll(answers.String(), canaries["a value of a task's env"], ""), // the output has it, see above
		"the director's output":                director.out.text() + director.err.text(),
		"the agent's output":                   agent.out.text() + agent.err.text(),
		"what a program got":                   strings.ReplaceAll(ran, canaries["a value of a task's env"], ""),
		"what a server was sent of its caller": strings.ReplaceAll(sent.String(), canaries["a header of a REST tool"], ""),    // it is meant for it
		"spans":                                strings.ReplaceAll(spans.String(), canaries["a header of the collector"], ""), // it is meant for it
		"the processes":                        b.arguments(),
	}
	secrets := map[string]string{"a token that was made": made.Secret}
	for what, secret := range canaries {
		secrets[what] = secret
	}
	for what, secret := range secrets {
		for where, text := range all {
			if at := strings.Index(text, secret); at >= 0 {
				t.Errorf("%s is in %s: …%s", what, where, text[max(0, at-200):at+len(secret)])
			}
		}
		if what == "a value of a task's env" || what == "an agent's own token" {
			continue // the program printed it, so it is in the task's log; for the other see below
		}
		b.nowhere("while they are used, of "+what, secret)
	}
	director.stop()
	agent.stop()
	for what, secret := range secrets {
		if what != "a value of a task's env" && what != "an agent's own token" {
			b.nowhere("after the end, of "+what, secret)
		}
	}
	// An agent keeps its own token for its owner in one private file.
	file := filepath.Join(b.root, "agents-worker", "agents", "worker", "agent.json")
	if found := holding(t, b.root, canaries["an agent's own token"]); len(found) != 1 || found[0] != file {
		t.Errorf("the agent's token is in %v", found)
	}
	if st, err := os.Stat(file); err != nil || st.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", st, err)
	}
	// The error about an unreachable store does not contain its password.
	b.vars["SIGNALBOX_STORE"] = "postgres://signalbox:" + canaries["the password of a store URL"] + "@127.0.0.1:1/signalbox?connect_timeout=1"
	got := b.cli("director", "--addr", "127.0.0.1:0", "--data", filepath.Join(b.root, "other"), "--log-level", "debug")
	if got.code == 0 || strings.Contains(got.out+got.err, canaries["the password of a store URL"]) {
		t.Errorf("exit %d: %s", got.code, got.err)
	}
}

// arguments are the arguments of all processes of the box.
func (b *box) arguments() string {
	var all strings.Builder
	for _, pid := range b.living() {
		argv, _ := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "cmdline"))
		all.Write(argv)
	}
	return all.String()
}

// rawly requests a path unchanged; a client would clean it.
func (b *box) rawly(addr, method, path string) (code int, header, said string) {
	b.t.Helper()
	conn, err := net.Dial("tcp", addr)
	if err != nil {
		b.t.Fatal(err)
	}
	defer conn.Close()
	fmt.Fprintf(conn, "%s %s HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nContent-Type: application/json\r\nContent-Length: 2\r\n\r\n{}", method, path)
	resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		b.t.Fatalf("%s %s: %v", method, path, err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		b.t.Fatal(err)
	}
	return resp.StatusCode, fmt.Sprint(resp.Header), string(body)
}

// A path that tries to escape from the pages' files, or from a folder, finds
// nothing at a real director.
func TestAttackTraversalAtARealDirector(t *testing.T) {
	b := newBox(t)
	b.file("data/passwd", "root:x:0:0", 0o600)
	tools := b.toolFile("tools.json", object{"commandTools": object{"echo": object{"command": "/bin/echo", "args": []string{"hi"}}}})
	director := b.director("--tools", tools)
	for _, form := range []string{
		"../../../../../../etc/passwd", "..%2f..%2f..%2f..%2fetc%2fpasswd", "%2e%2e/%2e%2e/%2e%2e/etc/passwd", "..%5c..%5cetc%5cpasswd", "..%252f..%252fetc%252fpasswd",
		"%2fetc%2fpasswd", "....//....//etc/passwd", "%c0%ae%c0%ae/etc/passwd", "passwd%00.js", b.data + "/passwd", "x%0d%0aX-Evil:%201",
	} {
		for _, at := range []struct{ method, path string }{
			{"GET", "/ui/assets/"}, {"GET", "/ui/"}, {"GET", "/"}, {"GET", "/api/queue/"}, {"GET", "/api/sessions/"}, {"POST", "/api/tools/" + form + "/call#"}, {"POST", "/api/tools/" + form + "/tasks#"},
		} {
			path, whole := strings.CutSuffix(at.path, "#")
			if !whole {
				path += form
			}
			code, header, said := b.rawly(strings.TrimPrefix(director.url, "http://"), at.method, path)
			if code >= 500 && code != http.StatusServiceUnavailable || code == 0 || strings.Contains(said, "root:x:") || strings.Contains(header, "X-Evil") {
				t.Errorf("%s %s: %d %.300s", at.method, path, code, said)
			}
			if at.path != "/ui/" && code == http.StatusOK && !strings.HasPrefix(said, "<!doctype html>") {
				t.Errorf("%s %s finds something: %.300s", at.method, path, said)
			}
		}
	}
}
