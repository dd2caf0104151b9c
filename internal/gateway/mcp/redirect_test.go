package mcp_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/internal/gateway"
	"github.com/signalbox-ai/signalbox/internal/gateway/mcp"
	"github.com/signalbox-ai/signalbox/internal/toolconf"
)

// bystander is a host that must not get any request.
func bystander(t *testing.T) *httptest.Server {
	other := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		t.Errorf("the other host was asked: %s %s %v", r.Method, r.URL, r.Header)
		http.Error(w, "", http.StatusTeapot)
	}))
	t.Cleanup(other.Close)
	return other
}

// TestHeadersStayWithTheServer: a redirect to another host is not followed, so
// that host gets neither secret headers nor arguments of a call.
func TestHeadersStayWithTheServer(t *testing.T) {
	for _, status := range []int{301, 302, 303, 307, 308} {
		t.Run(fmt.Sprint(status), func(t *testing.T) {
			t.Parallel()
			other := bystander(t)
			var auth atomic.Value
			var good atomic.Bool
			s, _ := overHTTP(t, func(w http.ResponseWriter, r *http.Request) {
				auth.Store(r.Header.Get("Authorization"))
				if good.Load() {
					w.Header().Set("Content-Type", "application/json")
					fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"result":{}}`, r.Header.Get("Request-Id"))
					return
				}
				http.Redirect(w, r, other.URL+"/?key=hunter2hunter2", status)
			})
			h := ready(t, s, mcp.Options{})
			msg := h.fails(signalbox.CodeToolFailed, "a", `{}`)
			if !strings.Contains(msg, other.URL) || !strings.Contains(msg, "put the new address into the configuration") || strings.Contains(msg, "hunter2") {
				t.Error(msg)
			}
			if auth.Load() != "Bearer topsecret" {
				t.Errorf("the server itself saw %v", auth.Load())
			}
			good.Store(true)
			h.must("a", `{}`)
			if s := h.Server(); s.Restarts != 0 {
				t.Errorf("afterwards %+v", s)
			}
		})
	}
}

// TestRedirectWithinOriginIsFollowed: a redirect is followed up to a limit,
// and if the method stays the same.
func TestRedirectWithinOriginIsFollowed(t *testing.T) {
	for _, c := range []struct {
		name   string
		status int
		hops   int64
		want   string // expected error
	}{
		{"307", 307, 5, ""},
		{"308", 308, 1, ""},
		{"too many", 307, 6, "more than 5 redirects"},
		{"302", 302, 1, "would turn POST into GET"},
		{"no address", 307, -1, "a redirect without an address"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			var hops atomic.Int64
			s, _ := overHTTP(t, func(w http.ResponseWriter, r *http.Request) {
				switch n := hops.Add(1); {
				case c.hops < 0:
					w.WriteHeader(c.status)
				case n <= c.hops:
					http.Redirect(w, r, fmt.Sprint("/hop/", n), c.status)
				case r.Header.Get("Authorization") != "Bearer topsecret":
					http.Error(w, "", http.StatusUnauthorized)
				default:
					w.Header().Set("Content-Type", "application/json")
					fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"result":{}}`, r.Header.Get("Request-Id"))
				}
			})
			h := ready(t, s, mcp.Options{})
			if c.want == "" {
				h.must("a", `{}`)
			} else if msg := h.fails(signalbox.CodeToolFailed, "a", `{}`); !strings.Contains(msg, c.want) {
				t.Error(msg)
			}
			if s := h.Server(); s.Restarts != 0 {
				t.Errorf("afterwards %+v", s)
			}
		})
	}
}

// TestMovedServerErrorNamesNewAddress: the first request already fails with
// the new URL.
func TestMovedServerErrorNamesNewAddress(t *testing.T) {
	for _, transport := range []toolconf.Transport{toolconf.HTTP, toolconf.SSE, toolconf.WebSocket} {
		t.Run(string(transport), func(t *testing.T) {
			t.Parallel()
			other := bystander(t)
			srv := httptest.NewServer(http.RedirectHandler(other.URL+"/?key=hunter2hunter2", http.StatusPermanentRedirect))
			t.Cleanup(srv.Close)
			addr := srv.URL
			if transport == toolconf.WebSocket {
				addr = "ws" + strings.TrimPrefix(addr, "http")
			}
			h := start(t, toolconf.Server{Name: "srv", Transport: transport, URL: addr, Shared: true}, mcp.Options{Backoff: time.Hour})
			movedTo(t, h, other)
		})
	}
}

// TestSSEEndpointAtOtherHostIsRefused: otherwise calls would be sent to that
// host.
func TestSSEEndpointAtOtherHostIsRefused(t *testing.T) {
	other := bystander(t)
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		fmt.Fprintf(w, "event: endpoint\ndata: %s/?key=hunter2hunter2\n\n", other.URL)
		_ = http.NewResponseController(w).Flush()
		<-r.Context().Done()
	}))
	t.Cleanup(srv.Close)
	h := start(t, toolconf.Server{Name: "srv", Transport: toolconf.SSE, URL: srv.URL, Shared: true}, mcp.Options{Backoff: time.Hour})
	movedTo(t, h, other)
}

func movedTo(t *testing.T, h *rig, other *httptest.Server) {
	t.Helper()
	s := h.until(func(s gateway.Server) bool { return s.State == gateway.StateFailed })
	if !strings.Contains(s.Error, other.URL) || !strings.Contains(s.Error, "put the new address into the configuration") || strings.Contains(s.Error, "hunter2") {
		t.Error(s.Error)
	}
}
