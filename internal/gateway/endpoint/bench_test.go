package endpoint_test

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"testing"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/signalbox-ai/signalbox/internal/gateway"
	"github.com/signalbox-ai/signalbox/internal/gateway/endpoint"
	"github.com/signalbox-ai/signalbox/internal/gateway/mcp"
	"github.com/signalbox-ai/signalbox/internal/testkit"
	"github.com/signalbox-ai/signalbox/internal/toolconf"
	"github.com/signalbox-ai/signalbox/toolqueue"
)

type benchArgs struct {
	Text string `json:"text"`
}

// upstreamOf starts a server with one tool, as in the SDK's examples.
func upstreamOf(b *testing.B) string {
	server := sdk.NewServer(&sdk.Implementation{Name: "upstream", Version: "1"}, nil)
	sdk.AddTool(server, &sdk.Tool{Name: "echo"}, func(_ context.Context, _ *sdk.CallToolRequest, in benchArgs) (*sdk.CallToolResult, any, error) {
		return &sdk.CallToolResult{Content: []sdk.Content{&sdk.TextContent{Text: in.Text}}}, nil, nil
	})
	s := httptest.NewServer(sdk.NewStreamableHTTPHandler(func(*http.Request) *sdk.Server { return server }, nil))
	b.Cleanup(func() { s.CloseClientConnections(); s.Close() })
	return s.URL
}

func clientOf(b *testing.B, url, version string) *sdk.ClientSession {
	s, err := sdk.NewClient(&sdk.Implementation{Name: "bench"}, nil).Connect(b.Context(), &sdk.StreamableClientTransport{Endpoint: url, DisableStandaloneSSE: true},
		&sdk.ClientSessionOptions{ProtocolVersion: version})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { s.Close() })
	return s
}

// BenchmarkCall measures a call between a client and a server of the SDK, and
// what the endpoint and the provider add to it. All run in one process.
func BenchmarkCall(b *testing.B) {
	b.Run("direct", func(b *testing.B) {
		client := clientOf(b, upstreamOf(b), "2025-11-25")
		bench(b, func() error {
			_, err := client.CallTool(b.Context(), &sdk.CallToolParams{Name: "echo", Arguments: benchArgs{"hello"}})
			return err
		})
	})
	provider := func(b *testing.B) *mcp.Provider {
		p := mcp.New(toolconf.Server{Name: "s", Transport: toolconf.HTTP, URL: upstreamOf(b), Shared: true, HealthProbe: "off", Queue: "default"}, mcp.Options{})
		b.Cleanup(func() { p.Close() })
		return p
	}
	b.Run("provider", func(b *testing.B) {
		p := provider(b)
		if err := p.Start(b.Context(), func() {}); err != nil {
			b.Fatal(err)
		}
		testkit.Wait(b, "the server is ready", func() bool { return p.Server().State == gateway.StateReady })
		bench(b, func() error {
			_, err := p.Call(b.Context(), gateway.Call{Tool: "s__echo", Arguments: json.RawMessage(`{"text":"hello"}`)})
			return err
		})
	})
	for _, version := range []string{"2025-11-25", "2026-07-28"} {
		b.Run("through "+version, func(b *testing.B) {
			queues := toolqueue.New(toolqueue.Hooks{})
			if err := queues.Configure(map[string]toolqueue.Config{"default": {Concurrent: 64}}); err != nil {
				b.Fatal(err)
			}
			g, err := gateway.New(gateway.Options{Queues: queues, Providers: []gateway.Provider{provider(b)}})
			if err != nil {
				b.Fatal(err)
			}
			b.Cleanup(func() { g.Close() })
			if err := g.Start(b.Context()); err != nil {
				b.Fatal(err)
			}
			testkit.Wait(b, "there are tools", func() bool { return len(g.Tools()) > 0 })
			e := endpoint.New(g, endpoint.Options{})
			b.Cleanup(func() { e.Close() })
			s := httptest.NewServer(e)
			b.Cleanup(func() { s.CloseClientConnections(); s.Close() })
			client := clientOf(b, s.URL, version)
			bench(b, func() error {
				_, err := client.CallTool(b.Context(), &sdk.CallToolParams{Name: "s__echo", Arguments: benchArgs{"hello"}})
				return err
			})
		})
	}
}

func bench(b *testing.B, call func() error) {
	b.Helper()
	b.ReportAllocs()
	for b.Loop() {
		if err := call(); err != nil {
			b.Fatal(err)
		}
	}
}
