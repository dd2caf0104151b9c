package mcp_test

import (
	"context"
	"encoding/json"
	"net/http"
	"path/filepath"
	"testing"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/signalbox-ai/signalbox/internal/gateway/mcp"
	"github.com/signalbox-ai/signalbox/internal/gateway/providertest"
	"github.com/signalbox-ai/signalbox/internal/toolconf"
)

// TestProvider: a program, shared and not shared, and a URL in each era.
func TestProvider(t *testing.T) {
	t.Parallel()
	fixtures := map[string]func(*testing.T) providertest.Fixture{
		"stdio":        func(t *testing.T) providertest.Fixture { return program(t, true) },
		"stdio of own": func(t *testing.T) providertest.Fixture { return program(t, false) },
		"http":         func(t *testing.T) providertest.Fixture { return address(t, nil) },
		"http without sessions": func(t *testing.T) providertest.Fixture {
			return address(t, &sdk.StreamableHTTPOptions{Stateless: true, PropagateRequestCancellation: true})
		},
	}
	for name, fixture := range fixtures {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			providertest.Run(t, fixture)
		})
	}
}

func fixture(s toolconf.Server) providertest.Fixture {
	return providertest.Fixture{
		Provider: mcp.New(s, mcp.Options{}), Answers: "srv__echo", Arguments: json.RawMessage(`{"text":"hello"}`), Hangs: "srv__hang",
	}
}

// program is a server that reports when a call hangs.
func program(t *testing.T, shared bool) providertest.Fixture {
	notes := filepath.Join(t.TempDir(), "notes")
	s := child("sdk", notesVar+"="+notes)
	s.Shared = shared
	f := fixture(s)
	f.Hanging = func(t *testing.T) {
		t.Helper()
		waitFor(t, notes, "begun")
	}
	p := f.Provider.(*mcp.Provider)
	f.Gone = func() bool { return len(p.Server().PIDs) == 0 }
	return f
}

func address(t *testing.T, o *sdk.StreamableHTTPOptions) providertest.Fixture {
	s := newServer()
	hangs := make(chan struct{}, 1)
	s.AddReceivingMiddleware(func(next sdk.MethodHandler) sdk.MethodHandler {
		return func(ctx context.Context, method string, req sdk.Request) (sdk.Result, error) {
			if call, ok := req.(*sdk.CallToolRequest); ok && call.Params.Name == "hang" {
				hangs <- struct{}{}
			}
			return next(ctx, method, req)
		}
	})
	url, gone := providertest.Serve(t, sdk.NewStreamableHTTPHandler(func(*http.Request) *sdk.Server { return s }, o))
	f := fixture(toolconf.Server{Name: "srv", Transport: toolconf.HTTP, URL: url, Shared: true, HealthProbe: "ping", Queue: "default"})
	f.Hanging, f.Gone = providertest.Signal(hangs), gone
	return f
}
