package mcp_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/internal/gateway"
	"github.com/signalbox-ai/signalbox/internal/gateway/mcp"
	"github.com/signalbox-ai/signalbox/internal/toolconf"
)

// overHTTP starts a server whose calls are answered by call; it handles
// everything else like an ordinary server of the older era.
func overHTTP(t *testing.T, call http.HandlerFunc) (toolconf.Server, *httptest.Server) {
	t.Helper()
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		var req request
		_ = json.Unmarshal(body, &req)
		switch {
		case r.Method != http.MethodPost:
			w.WriteHeader(http.StatusMethodNotAllowed)
		case req.Method == "tools/call" || req.Method == "": // or a response to a request that call made
			r.Header.Set("Request-Id", string(req.ID))
			r.Body = io.NopCloser(bytes.NewReader(body))
			call(w, r)
		case len(req.ID) == 0:
			w.WriteHeader(http.StatusAccepted)
		default:
			w.Header().Set("Content-Type", "application/json")
			rawAnswer(w, req)
		}
	}))
	t.Cleanup(srv.Close)
	return toolconf.Server{Name: "srv", Transport: toolconf.HTTP, URL: srv.URL + "/mcp?key=hunter2hunter2", Shared: true, HealthProbe: "ping",
		Headers: map[string]string{"Authorization": "Bearer topsecret"}}, srv
}

// TestHTTPErrorFailsOnlyItsCall: an HTTP error for one call does not cost
// other calls their session.
func TestHTTPErrorFailsOnlyItsCall(t *testing.T) {
	for _, c := range []struct {
		name   string
		code   signalbox.Code
		want   string
		answer http.HandlerFunc
	}{
		{"413", signalbox.CodeToolFailed, "HTTP 413 Request Entity Too Large", func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "topsecret", 413) }},
		{"401", signalbox.CodeToolFailed, "Check the headers", func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "topsecret", 401) }},
		{"500", signalbox.CodeToolFailed, "HTTP 500", func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "", 500) }},
		{"503", signalbox.CodeToolDown, "HTTP 503", func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "", 503) }},
		{"page", signalbox.CodeToolFailed, "not an MCP message", func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "text/html")
			fmt.Fprint(w, "<html>")
		}},
		{"broken json", signalbox.CodeToolFailed, "not an MCP message", func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			fmt.Fprint(w, `{"jsonrpc":`)
		}},
		{"other id", signalbox.CodeToolFailed, "not an MCP message", func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			fmt.Fprint(w, `{"jsonrpc":"2.0","id":99999,"result":{"content":[]}}`)
		}},
		{"cut off", signalbox.CodeToolLost, "was lost while it answered", func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			w.Header().Set("Content-Length", "100")
			fmt.Fprint(w, `{"jsonrpc":`)
		}},
		{"huge", signalbox.CodeTooLarge, "larger than 16 MiB", func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			_, _ = w.Write(make([]byte, 17<<20))
		}},
		{"stream without an answer", signalbox.CodeToolLost, "", func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "text/event-stream")
			fmt.Fprint(w, ": hello\n\nevent: message\ndata: what?\n\n")
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			var good atomic.Bool
			s, _ := overHTTP(t, func(w http.ResponseWriter, r *http.Request) {
				if !good.Load() {
					c.answer(w, r)
					return
				}
				w.Header().Set("Content-Type", "text/event-stream")
				fmt.Fprintf(w, "id: 7\r\ndata: {\"jsonrpc\":\"2.0\",\r\ndata: \"id\":%s,\"result\":{\"content\":[{\"type\":\"text\",\"text\":1.0}]}}\r\n\r\n", r.Header.Get("Request-Id"))
			})
			h := ready(t, s, mcp.Options{})
			msg := h.fails(c.code, "a", `{}`)
			if !strings.Contains(msg, c.want) || strings.Contains(msg, "secret") || strings.Contains(msg, "hunter2") {
				t.Error(msg)
			}
			good.Store(true)
			if r := h.must("a", `{}`); string(r.Content) != `[{"type":"text","text":1.0}]` {
				t.Errorf("afterwards %s", r.Content)
			}
			if s := h.Server(); s.Restarts != 0 {
				t.Errorf("afterwards %+v", s)
			}
		})
	}
}

// TestRefusedHTTPCall: a server that did not process a call says when to retry, even if it
// answers with a protocol message.
func TestRefusedHTTPCall(t *testing.T) {
	for name, answer := range map[string]http.HandlerFunc{
		"a page": func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "later", http.StatusServiceUnavailable) },
		"an error of the protocol": func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(http.StatusServiceUnavailable)
			fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"error":{"code":-32000,"message":"later"}}`, r.Header.Get("Request-Id"))
		},
	} {
		t.Run(name, func(t *testing.T) {
			s, _ := overHTTP(t, func(w http.ResponseWriter, r *http.Request) {
				w.Header().Set("Retry-After", "7")
				answer(w, r)
			})
			h := ready(t, s, mcp.Options{})
			_, err := h.call("a", `{}`)
			if refused, ok := errors.AsType[*gateway.Refused](err); !ok || *refused != (gateway.Refused{By: `the server "srv"`, Status: 503, After: 7 * time.Second}) {
				t.Error(err)
			}
			if s := h.Server(); s.Restarts != 0 || s.State != gateway.StateReady {
				t.Errorf("%+v", s)
			}
		})
	}
}

// TestUnreachableHTTPServerIsDetected: a call that cannot be sent fails with
// a clear error and triggers a health probe.
func TestUnreachableHTTPServerIsDetected(t *testing.T) {
	s, srv := overHTTP(t, func(http.ResponseWriter, *http.Request) {})
	h := ready(t, s, mcp.Options{Backoff: time.Hour})
	srv.Close()
	// If the connection was still open when the call went out, the server may
	// have got it.
	_, err := h.call("a", `{}`)
	down := signalbox.CodeOf(err) == signalbox.CodeToolDown && strings.Contains(err.Error(), "could not be reached")
	lost := signalbox.CodeOf(err) == signalbox.CodeToolLost && strings.Contains(err.Error(), "is not known")
	if !down && !lost || strings.Contains(err.Error(), "hunter2") {
		t.Error(err)
	}
	h.until(func(s gateway.Server) bool { return s.State == gateway.StateFailed })
	msg := h.fails(signalbox.CodeToolDown, "a", `{}`)
	if !strings.Contains(msg, "is down") {
		t.Error(msg)
	}
}

// TestRefusedSSEPostFailsOnlyItsCall: the answer will not arrive on the
// stream.
func TestRefusedSSEPostFailsOnlyItsCall(t *testing.T) {
	server := newServer()
	inner := sdk.NewSSEHandler(func(*http.Request) *sdk.Server { return server }, nil)
	var refuse atomic.Bool
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if refuse.Load() && r.Method == http.MethodPost {
			http.Error(w, "", http.StatusTooManyRequests)
			return
		}
		inner.ServeHTTP(w, r)
	}))
	t.Cleanup(srv.Close)
	h := ready(t, toolconf.Server{Name: "srv", Transport: toolconf.SSE, URL: srv.URL, Shared: true, HealthProbe: "off"}, mcp.Options{})
	refuse.Store(true)
	_, err := h.call("echo", `{"text":"x"}`)
	if refused, ok := errors.AsType[*gateway.Refused](err); !ok || refused.Status != http.StatusTooManyRequests || refused.After != 0 {
		t.Error(err)
	}
	refuse.Store(false)
	h.must("echo", `{"text":"x"}`)
	if s := h.Server(); s.Restarts != 0 {
		t.Errorf("%+v", s)
	}
}
