package mcp_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/coder/websocket"
	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/internal/gateway"
	"github.com/signalbox-ai/signalbox/internal/gateway/mcp"
	"github.com/signalbox-ai/signalbox/internal/toolconf"
)

// wsConn is the server's side of MCP over a WebSocket.
type wsConn struct{ *websocket.Conn }

func (c wsConn) Connect(context.Context) (sdk.Connection, error) { return c, nil }
func (c wsConn) SessionID() string                               { return "" }
func (c wsConn) Close() error                                    { return c.CloseNow() }
func (c wsConn) Read(ctx context.Context) (jsonrpc.Message, error) {
	_, b, err := c.Conn.Read(ctx)
	if err != nil {
		return nil, err
	}
	return jsonrpc.DecodeMessage(b)
}
func (c wsConn) Write(ctx context.Context, m jsonrpc.Message) error {
	b, err := jsonrpc.EncodeMessage(m)
	if err != nil {
		return err
	}
	return c.Conn.Write(ctx, websocket.MessageText, b)
}

// webServer serves the ordinary server over an HTTP or WebSocket transport.
func webServer(t *testing.T, kind string) toolconf.Server {
	t.Helper()
	s := newServer()
	get := func(*http.Request) *sdk.Server { return s }
	var h http.Handler
	transport := toolconf.HTTP
	switch kind {
	case "sse":
		h, transport = sdk.NewSSEHandler(get, nil), toolconf.SSE
	case "http-new":
		h = sdk.NewStreamableHTTPHandler(get, &sdk.StreamableHTTPOptions{Stateless: true, PropagateRequestCancellation: true})
	case "http":
		h = legacyOnly(sdk.NewStreamableHTTPHandler(get, &sdk.StreamableHTTPOptions{}))
	case "http-json":
		h = legacyOnly(sdk.NewStreamableHTTPHandler(get, &sdk.StreamableHTTPOptions{JSONResponse: true}))
	case "websocket":
		transport = toolconf.WebSocket
		h = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			c, err := websocket.Accept(w, r, &websocket.AcceptOptions{Subprotocols: []string{"mcp"}})
			if err != nil {
				return
			}
			if c.Subprotocol() != "mcp" {
				t.Errorf("subprotocol %q", c.Subprotocol())
			}
			session, err := s.Connect(r.Context(), wsConn{c}, nil)
			if err == nil {
				_ = session.Wait()
			}
		})
	}
	srv := httptest.NewServer(h)
	t.Cleanup(srv.Close)
	addr := srv.URL
	if transport == toolconf.WebSocket {
		addr = "ws" + strings.TrimPrefix(addr, "http")
	}
	return toolconf.Server{Name: "srv", Transport: transport, URL: addr, Shared: true, HealthProbe: "ping", Queue: "default"}
}

// legacyOnly refuses requests of the newer era, as older servers do.
func legacyOnly(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Mcp-Method") == "server/discover" {
			http.Error(w, "what?", http.StatusBadRequest)
			return
		}
		next.ServeHTTP(w, r)
	})
}

func TestTransports(t *testing.T) {
	servers := map[string]func(*testing.T) toolconf.Server{
		"stdio": func(*testing.T) toolconf.Server { return child("sdk") },
	}
	for _, kind := range []string{"http", "http-json", "http-new", "sse", "websocket"} {
		servers[kind] = func(t *testing.T) toolconf.Server { return webServer(t, kind) }
	}
	for name, server := range servers {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := ready(t, server(t), mcp.Options{})
			r := h.must("echo", `{"text":"hello"}`)
			if got := string(r.Content); got != `[{"type":"text","text":"hello"}]` {
				t.Errorf("content %s", got)
			}
			if r := h.must("fails", `{}`); !r.IsError || !strings.Contains(string(r.Content), "it did not work") {
				t.Errorf("a failing tool: %+v", r)
			}
			var words []gateway.Progress
			_, err := h.Call(h.ctx(), gateway.Call{Tool: "srv__steps", Progress: func(p gateway.Progress) { words = append(words, p) }})
			if err != nil {
				t.Fatal(err)
			}
			if name != "http-json" { // that transport cannot
				if len(words) != 3 || words[2] != (gateway.Progress{Progress: 3, Total: 3, Message: "step 3"}) {
					t.Errorf("progress %+v", words)
				}
			}
			if s := h.Server(); s.State != gateway.StateReady || s.Restarts != 0 || s.Tools != 6 {
				t.Errorf("afterwards %+v", s)
			}
		})
	}
}

// An answer beyond the limit fails only its call. Other tests cover the other
// transports.
func TestAnswerBeyondLimitFailsOnlyItsCall(t *testing.T) {
	t.Parallel()
	for _, kind := range []string{"http-new", "sse", "websocket"} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			h := ready(t, webServer(t, kind), mcp.Options{})
			if msg := h.fails(signalbox.CodeTooLarge, "big", `{}`); !strings.Contains(msg, "larger than 16 MiB") {
				t.Errorf("too large: %s", msg)
			}
			h.must("echo", `{"text":"and on"}`)
			if s := h.Server(); s.State != gateway.StateReady || s.Restarts != 0 {
				t.Errorf("afterwards %+v", s)
			}
		})
	}
}

func TestWebSocketHeadersAndRefusal(t *testing.T) {
	var auth atomic.Value
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		auth.Store(r.Header.Get("Authorization"))
		http.Error(w, "topsecret", http.StatusForbidden)
	}))
	t.Cleanup(srv.Close)
	h := start(t, toolconf.Server{Name: "srv", Transport: toolconf.WebSocket, URL: "ws" + strings.TrimPrefix(srv.URL, "http"), Shared: true,
		Headers: map[string]string{"Authorization": "Bearer topsecret"}}, mcp.Options{Backoff: time.Hour})
	s := h.until(func(s gateway.Server) bool { return s.State == gateway.StateFailed })
	if auth.Load() != "Bearer topsecret" || !strings.Contains(s.Error, "HTTP 403 Forbidden") || strings.Contains(s.Error, "topsecret") {
		t.Errorf("the server saw %v, the error is %s", auth.Load(), s.Error)
	}
}
