package main

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"syscall"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// bench holds what the sections share.
type bench struct {
	dir           string
	rounds, calls int
	figures       []figure
}

func (b *bench) add(name string, value float64, unit, target string, met *bool, note string) {
	b.figures = append(b.figures, figure{name, value, unit, target, met, note})
	fmt.Fprintf(os.Stderr, "%-70s %10.3f %s\n", name, value, unit)
}

// said is what a call of the tool echo says.
type said struct {
	Text string `json:"text"`
}

// newUpstream serves one tool as the SDK's own examples do.
func newUpstream() *httptest.Server {
	server := mcp.NewServer(&mcp.Implementation{Name: "upstream", Version: "1.0.0"}, nil)
	mcp.AddTool(server, &mcp.Tool{Name: "echo", Description: "says what it is told"}, func(_ context.Context, _ *mcp.CallToolRequest, in said) (*mcp.CallToolResult, any, error) {
		return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: in.Text}}}, nil, nil
	})
	handler := func(stateless bool) http.Handler {
		return mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return server }, &mcp.StreamableHTTPOptions{Stateless: stateless})
	}
	legacy, modern := handler(false), handler(true)
	return httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Mcp-Protocol-Version") >= modernEra {
			modern.ServeHTTP(w, r)
			return
		}
		legacy.ServeHTTP(w, r)
	}))
}

// director is a running director with the upstream behind it.
type director struct {
	url string
	cmd *exec.Cmd
}

var addressForm = regexp.MustCompile(`at (http://[0-9.:]+)`)

func (b *bench) start(ctx context.Context, upstream string) (*director, error) {
	binary, tools := filepath.Join(b.dir, "signalbox"), filepath.Join(b.dir, "tools.json")
	build := exec.CommandContext(ctx, "go", "build", "-trimpath", "-o", binary, "github.com/signalbox-ai/signalbox/cmd/signalbox")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("build: %w\n%s", err, out)
	}
	config := `{"queues":{"default":{"concurrent":64}},"mcpServers":{"s":{"type":"http","url":` + strconv.Quote(upstream) + `}}}`
	if err := os.WriteFile(tools, []byte(config), 0o600); err != nil {
		return nil, err
	}
	data := filepath.Join(b.dir, "data")
	cmd := exec.CommandContext(ctx, binary, "director", "--addr", "127.0.0.1:0", "--data", data, "--tools", tools, "--grace", "0s", "--log-level", "error")
	cmd.Env = append(os.Environ(), "SIGNALBOX_HOME="+data)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	for lines := bufio.NewScanner(out); lines.Scan(); {
		if m := addressForm.FindStringSubmatch(lines.Text()); m != nil {
			go func() { _, _ = io.Copy(io.Discard, out) }()
			return &director{m[1], cmd}, nil
		}
	}
	_ = cmd.Wait()
	return nil, fmt.Errorf("the director did not say where it is")
}

func (d *director) stop() {
	_ = syscall.Kill(-d.cmd.Process.Pid, syscall.SIGTERM)
	_ = d.cmd.Wait()
}
