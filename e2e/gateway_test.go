package e2e_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/signalbox-ai/signalbox/api"
)

// mcpServerEnv makes this test binary an MCP server on stdin and stdout, with
// a child process. Its value is the file in which the server records its
// calls.
const mcpServerEnv = "SIGNALBOX_E2E_MCP_SERVER"

// serveMCP is the server's program: greet answers at once, hold when it is
// cancelled.
func serveMCP(log string) error {
	sleep, err := exec.LookPath("sleep")
	if err != nil {
		return err
	}
	if err := exec.Command(sleep, "600").Start(); err != nil {
		return err
	}
	note := func(word string) {
		f, err := os.OpenFile(log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
		if err == nil {
			fmt.Fprintln(f, word)
			f.Close()
		}
	}
	s := mcp.NewServer(&mcp.Implementation{Name: "held", Version: "1"}, nil)
	type none struct{}
	mcp.AddTool(s, &mcp.Tool{Name: "greet", Description: "Says hello"}, func(context.Context, *mcp.CallToolRequest, none) (*mcp.CallToolResult, any, error) {
		return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: "hello"}}}, nil, nil
	})
	mcp.AddTool(s, &mcp.Tool{Name: "hold"}, func(ctx context.Context, _ *mcp.CallToolRequest, _ none) (*mcp.CallToolResult, any, error) {
		note("hold")
		<-ctx.Done()
		note("let go")
		return nil, nil, ctx.Err()
	})
	return s.Run(context.Background(), &mcp.StdioTransport{})
}

// tools writes a tools file with the server above, with capacity 1, and
// returns it with the server's log.
func (b *box) tools() (file, log string) {
	b.t.Helper()
	self, err := os.Executable()
	if err != nil {
		b.t.Fatal(err)
	}
	log = filepath.Join(b.root, "held.log")
	data, err := json.Marshal(map[string]any{
		"queues": map[string]any{"default": map[string]int{"concurrent": 64}, "held": map[string]int{"concurrent": 1}},
		"mcpServers": map[string]any{"held": map[string]any{
			"command": self, "queue": "held", "env": map[string]string{mcpServerEnv: log, "PATH": os.Getenv("PATH"), "HOME": b.home},
		}},
	})
	if err != nil {
		b.t.Fatal(err)
	}
	return b.file("tools.json", string(data), 0o600), log
}

func (b *box) logged(log, word string, times int) {
	b.t.Helper()
	b.until(fmt.Sprintf("%d times %q in the server's log", times, word), func() bool {
		said, _ := os.ReadFile(log)
		return strings.Count(string(said), word+"\n") == times
	})
}

// tool waits until a tool can be called.
func (b *box) tool(url, name string) {
	b.t.Helper()
	b.until(name+" is there", func() bool {
		return strings.Contains(b.want(0, "tools", "--json", "--director", url).out, `"`+name+`"`)
	})
}

// A standalone gateway has tools and nothing else, and leaves no process
// behind.
func TestGatewayAlone(t *testing.T) {
	b := newBox(t)
	file, log := b.tools()
	p := b.serve("gateway", "--tools", file, "--addr", "127.0.0.1:0")
	p.prints("claude mcp add signalbox -- signalbox gateway --stdio --director " + p.url)
	b.tool(p.url, "held__greet")
	if got := b.want(0, "tools", "call", "held__greet", "--director", p.url); got.out != "hello\n" {
		t.Errorf("%+v", got)
	}
	if got := b.want(3, "status", "--director", p.url); !strings.Contains(got.err, "standalone gateway") {
		t.Errorf("%s", got.err)
	}
	servers := parse[struct{ Servers []api.ToolServer }](t, b.want(0, "tools", "servers", "--json", "--director", p.url).out).Servers
	if len(servers) != 1 || servers[0].State != "ready" || len(servers[0].PIDs) != 2 {
		t.Fatalf("the server and its child: %+v", servers)
	}
	call := b.start("tools", "call", "held__hold", "--director", p.url)
	b.logged(log, "hold", 1)
	if metrics := scrape(t, p.url); !strings.Contains(metrics, `signalbox_tool_queue_in_use{queue="held"} 1`) {
		t.Errorf("%s", metrics)
	}
	p.signal(syscall.SIGTERM)
	if code := p.exits(); code != 0 {
		t.Errorf("exit code %d", code)
	}
	if code := call.exits(); code != 7 {
		t.Errorf("the call under way: exit code %d", code)
	}
	if left := b.living(); len(left) > 0 {
		t.Errorf("processes of the server are still alive: %v of %v", left, servers[0].PIDs)
	}
}

func scrape(t *testing.T, url string) string {
	t.Helper()
	resp, err := http.Get(url + "/metrics")
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	data, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// bridge starts signalbox gateway --stdio and talks to it as a client does.
func (b *box) bridge(progress chan<- string, args ...string) (*mcp.ClientSession, *exec.Cmd, *tape) {
	b.t.Helper()
	cmd := exec.Command(binary, append([]string{"gateway", "--stdio"}, args...)...)
	said := newTape()
	cmd.Dir, cmd.Env, cmd.Stderr = b.work, b.environ(), said
	c := mcp.NewClient(&mcp.Implementation{Name: "e2e", Version: "1"}, &mcp.ClientOptions{
		ProgressNotificationHandler: func(_ context.Context, p *mcp.ProgressNotificationClientRequest) { progress <- p.Params.Message },
	})
	session, err := c.Connect(b.ctx(), &mcp.CommandTransport{Command: cmd}, &mcp.ClientSessionOptions{ProtocolVersion: "2025-06-18"})
	if err != nil {
		b.t.Fatalf("%v\n%s", err, said.text())
	}
	b.t.Cleanup(func() { session.Close() })
	return session, cmd, said
}

// Programs that start their own MCP server share the director's tools. If one
// of them dies, it releases what it held.
func TestStdioGatewaysShareTheDirectorsTools(t *testing.T) {
	b := newBox(t)
	file, log := b.tools()
	d := b.director("--tools", file)
	b.tool(d.url, "held__hold")
	progress := make(chan string, 100)
	one, process, said := b.bridge(progress)
	b.until("it says whose tools it has", func() bool { return strings.Contains(said.text(), "tools of the director at "+d.url) })
	two, _, _ := b.bridge(progress)
	list, err := two.ListTools(b.ctx(), nil)
	if err != nil {
		t.Fatal(err)
	}
	if own := configured(list.Tools); len(own) != 2 || own[0].Name != "held__greet" || len(list.Tools) != len(own)+len(queueTools) {
		t.Fatalf("%+v", list)
	}
	go one.CallTool(b.ctx(), &mcp.CallToolParams{Name: "held__hold"}) //nolint:errcheck // its process is killed
	b.logged(log, "hold", 1)
	answered := make(chan error, 1)
	go func() {
		_, err := two.CallTool(b.ctx(), &mcp.CallToolParams{Name: "held__greet", Meta: mcp.Meta{"progressToken": "p"}})
		answered <- err
	}()
	select {
	case got := <-progress:
		if got != "queued, position 1" {
			t.Error(got)
		}
	case err := <-answered:
		t.Fatalf("it did not wait: %v", err)
	case <-b.ctx().Done():
		t.Fatal("it does not learn its place")
	}
	if err := process.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	b.logged(log, "let go", 1)
	if err := <-answered; err != nil {
		t.Error(err)
	}
	alone, _, said := b.bridge(progress, "--tools", file)
	if list, err := alone.ListTools(b.ctx(), nil); err != nil || len(list.Tools) != 2 || !strings.Contains(said.text(), "own configuration") {
		t.Errorf("%+v, %v\n%s", list, err, said.text())
	}
	alone.Close()
	two.Close()
	d.signal(syscall.SIGTERM)
	if code := d.exits(); code != 0 {
		t.Errorf("exit code %d", code)
	}
	b.until("no process is left", func() bool { return len(b.living()) == 0 })
}
