package mcp_test

import (
	"bufio"
	"encoding/json"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/signalbox-ai/signalbox/internal/gateway"
	"github.com/signalbox-ai/signalbox/internal/gateway/mcp"
	"github.com/signalbox-ai/signalbox/internal/toolconf"
)

// everything returns the path of the reference server, which setup installs.
func everything(t *testing.T) string {
	t.Helper()
	dir := os.Getenv("SIGNALBOX_TEST_NPM")
	if dir == "" {
		dir = filepath.Join("..", "..", "..", ".cache", "npm")
	}
	program, err := filepath.Abs(filepath.Join(dir, "node_modules", "@modelcontextprotocol", "server-everything", "dist", "index.js"))
	if err == nil {
		_, err = os.Stat(program)
	}
	if err == nil {
		_, err = exec.LookPath("node")
	}
	if err != nil && os.Getenv("CI") == "true" {
		t.Fatal(err)
	}
	if err != nil {
		t.Skipf("the reference server is not installed: run make setup and set SIGNALBOX_TEST_NPM to .cache/npm (%v)", err)
	}
	return program
}

// everythingOver runs the reference server in one of its modes.
func everythingOver(t *testing.T, mode string) toolconf.Server {
	t.Helper()
	program := everything(t)
	s := toolconf.Server{Name: "srv", Transport: toolconf.Stdio, Command: "node", Args: []string{program, "stdio"}, Shared: true, HealthProbe: "ping"}
	if mode == "stdio" {
		return s
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	port := l.Addr().(*net.TCPAddr).Port
	l.Close()
	cmd := exec.Command("node", program, mode)
	cmd.Env = append(os.Environ(), fmt.Sprint("PORT=", port))
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	s.Transport, s.URL = toolconf.HTTP, fmt.Sprintf("http://127.0.0.1:%d/mcp", port)
	if mode == "sse" {
		s.Transport, s.URL = toolconf.SSE, fmt.Sprintf("http://127.0.0.1:%d/sse", port)
	}
	return s
}

// direct talks to the reference server with no Signalbox code in between.
type direct struct {
	mu  sync.Mutex
	in  *json.Encoder
	out *bufio.Scanner
	id  int
}

func connectDirectly(t *testing.T) *direct {
	t.Helper()
	cmd := exec.Command("node", everything(t), "stdio")
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	d := &direct{in: json.NewEncoder(in), out: bufio.NewScanner(out)}
	d.out.Buffer(nil, 1<<20)
	d.ask(t, "initialize", `{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"t","version":"1"}}`)
	_ = d.in.Encode(map[string]any{"jsonrpc": "2.0", "method": "notifications/initialized"})
	return d
}

// ask returns the result of a request exactly as the server wrote it.
func (d *direct) ask(t *testing.T, method, params string) json.RawMessage {
	t.Helper()
	d.mu.Lock()
	defer d.mu.Unlock()
	d.id++
	if err := d.in.Encode(map[string]any{"jsonrpc": "2.0", "id": d.id, "method": method, "params": json.RawMessage(params)}); err != nil {
		t.Fatal(err)
	}
	for d.out.Scan() {
		var m struct {
			ID     int             `json:"id"`
			Result json.RawMessage `json:"result"`
		}
		if json.Unmarshal(d.out.Bytes(), &m) == nil && m.ID == d.id && m.Result != nil {
			return m.Result
		}
	}
	t.Fatalf("no answer to %s: %v", method, d.out.Err())
	return nil
}

// TestReferenceServer drives the real reference server over every transport
// that it supports.
func TestReferenceServer(t *testing.T) {
	t.Parallel()
	d := connectDirectly(t)
	for _, mode := range []string{"stdio", "streamableHttp", "sse"} {
		t.Run(mode, func(t *testing.T) {
			t.Parallel()
			h := ready(t, everythingOver(t, mode), mcp.Options{Backoff: 100 * time.Millisecond})
			h.sameTools(d)
			for tool, args := range map[string]string{
				"echo":                   `{"message":"<hello> & goodbye"}`,
				"get-sum":                `{"a":0.1,"b":2}`,
				"get-tiny-image":         `{}`,
				"get-annotated-message":  `{"messageType":"error","includeImage":true}`,
				"get-resource-links":     `{"count":3}`,
				"get-structured-content": `{"location":"Chicago"}`,
			} {
				h.sameAnswer(d, tool, args)
			}
			if r := h.must("get-sum", `{"a":"no number"}`); !r.IsError {
				t.Errorf("wrong arguments: %s", r.Content)
			}
			var words []gateway.Progress
			r, err := h.Call(h.ctx(), gateway.Call{
				Tool: "srv__trigger-long-running-operation", Arguments: json.RawMessage(`{"duration":0.2,"steps":4}`),
				Progress: func(p gateway.Progress) { words = append(words, p) },
			})
			want := []gateway.Progress{{Progress: 1, Total: 4}, {Progress: 2, Total: 4}, {Progress: 3, Total: 4}, {Progress: 4, Total: 4}}
			if err != nil || !slices.Equal(words, want) || !strings.Contains(string(r.Content), "completed") {
				t.Errorf("a long operation: %v, %s, progress %+v", err, r.Content, words)
			}
		})
	}
}

// sameTools compares the definitions with those that the server itself lists.
func (h *rig) sameTools(d *direct) {
	h.t.Helper()
	var listed struct{ Tools []json.RawMessage }
	if err := json.Unmarshal(d.ask(h.t, "tools/list", "{}"), &listed); err != nil || len(listed.Tools) < 10 {
		h.t.Fatalf("%d tools: %v", len(listed.Tools), err)
	}
	ours := map[string]string{}
	for _, t := range h.Tools() {
		ours[t.Name] = strings.Replace(string(t.Definition), `"srv__`, `"`, 1)
	}
	for _, raw := range listed.Tools {
		var t struct{ Name string }
		_ = json.Unmarshal(raw, &t)
		if got := ours["srv__"+t.Name]; got != string(raw) {
			h.t.Errorf("the definition of %s\ngot  %s\nwant %s", t.Name, got, raw)
		}
	}
}

func (h *rig) sameAnswer(d *direct, tool, args string) {
	h.t.Helper()
	var want struct {
		Content    json.RawMessage `json:"content"`
		Structured json.RawMessage `json:"structuredContent"`
	}
	if err := json.Unmarshal(d.ask(h.t, "tools/call", fmt.Sprintf(`{"name":%q,"arguments":%s}`, tool, args)), &want); err != nil {
		h.t.Fatal(err)
	}
	got := h.must(tool, args)
	if string(got.Content) != string(want.Content) || string(got.Structured) != string(want.Structured) {
		h.t.Errorf("%s answers\n     %s %s\nwant %s %s", tool, got.Content, got.Structured, want.Content, want.Structured)
	}
}
