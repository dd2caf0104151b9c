package gateway

import (
	"context"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/signalbox-ai/signalbox/bench/internal/director"
	"github.com/signalbox-ai/signalbox/bench/internal/measure"
)

// rig is the shared state of the sides: a server with one tool, and a director in front
// of it.
type rig struct {
	upstream, director string
}

func (r *rig) start(ctx context.Context, b *measure.Bench) error {
	if r.director != "" {
		return nil
	}
	upstream := newUpstream()
	b.Cleanup(func() {
		upstream.CloseClientConnections() // streams of the older protocol would keep it open
		upstream.Close()
	})
	d, err := start(ctx, b, "data", upstream.URL)
	if err != nil {
		return err
	}
	b.Cleanup(d.Stop)
	r.upstream, r.director = upstream.URL, d.URL
	return nil
}

// said is the argument and the answer of the tool echo.
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

// start starts a director in front of the upstream, with a data folder of that name.
func start(ctx context.Context, b *measure.Bench, folder, upstream string) (*director.Process, error) {
	binary, err := director.Build(ctx, b.Bin)
	if err != nil {
		return nil, err
	}
	tools, data := filepath.Join(b.Dir, "tools.json"), filepath.Join(b.Dir, folder)
	config := `{"queues":{"default":{"concurrent":64}},"mcpServers":{"s":{"type":"http","url":` + strconv.Quote(upstream) + `}}}`
	if err := os.WriteFile(tools, []byte(config), 0o600); err != nil {
		return nil, err
	}
	cmd := exec.CommandContext(ctx, binary, "director", "--open", "--addr", "127.0.0.1:0", "--data", data, "--tools", tools, "--grace", "0s", "--log-level", "error")
	cmd.Env = append(os.Environ(), "SIGNALBOX_HOME="+data, "SIGNALBOX_QUEUE_MAX_SIZE=1000000")
	return director.Start(cmd)
}
