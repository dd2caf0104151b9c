package mcp_test

import (
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/internal/gateway"
	"github.com/signalbox-ai/signalbox/internal/gateway/mcp"
	"github.com/signalbox-ai/signalbox/internal/toolconf"
)

// rawHTTP is a server with sessions that writes every byte itself. seen gets
// each POST first and may answer it.
func rawHTTP(t *testing.T, seen func(w http.ResponseWriter, r *http.Request, req request) bool) toolconf.Server {
	t.Helper()
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		var req request
		_ = json.Unmarshal(body, &req)
		switch {
		case r.Method != http.MethodPost:
			w.WriteHeader(http.StatusMethodNotAllowed)
		case seen(w, r, req):
		case len(req.ID) == 0:
			w.WriteHeader(http.StatusAccepted)
		default:
			w.Header().Set("Content-Type", "application/json")
			w.Header().Set("Mcp-Session-Id", "one")
			rawAnswer(w, req)
		}
	}))
	t.Cleanup(srv.Close)
	return toolconf.Server{Name: "srv", Transport: toolconf.HTTP, URL: srv.URL, Shared: true, HealthProbe: "off"}
}

// TestLostSessionIsReopened: a restarted server has lost its sessions; the
// call is sent once more, in a new session.
func TestLostSessionIsReopened(t *testing.T) {
	var h atomic.Value
	fresh := func() {
		s := newServer()
		t.Cleanup(func() {
			for session := range s.Sessions() {
				session.Close()
			}
		})
		h.Store(sdk.NewStreamableHTTPHandler(func(*http.Request) *sdk.Server { return s }, nil))
	}
	fresh()
	srv := httptest.NewServer(legacyOnly(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { h.Load().(http.Handler).ServeHTTP(w, r) })))
	t.Cleanup(srv.Close)
	p := ready(t, toolconf.Server{Name: "srv", Transport: toolconf.HTTP, URL: srv.URL, Shared: true, HealthProbe: "off"}, mcp.Options{Backoff: time.Hour})
	p.must("echo", `{"text":"x"}`)
	for n := range 5 { // the server is up, so repeated losses cause no wait
		fresh()
		var all sync.WaitGroup
		for range 4 {
			all.Go(func() {
				if _, err := p.call("echo", `{"text":"x"}`); err != nil {
					t.Error(err)
				}
			})
		}
		all.Wait()
		if s := p.until(func(s gateway.Server) bool { return s.State == gateway.StateReady }); s.Restarts != n+1 {
			t.Fatalf("%+v", s)
		}
	}
}

// Test404FailsOnlyItsCall: if the server still knows the session, only the
// call fails, and the others continue.
func Test404FailsOnlyItsCall(t *testing.T) {
	for _, c := range []struct{ name, body, also string }{
		{"plain", "no such page", ""},
		{"in the protocol", `{"jsonrpc":"2.0","id":%s,"error":{"code":-32602,"message":"no such thing"}}`, ""},
		{"ping is not known either", "no such page", "ping"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			var greetings atomic.Int32
			hangs, release := make(chan struct{}), make(chan struct{})
			s := rawHTTP(t, func(w http.ResponseWriter, _ *http.Request, req request) bool {
				switch {
				case req.Method == "initialize":
					greetings.Add(1)
				case string(req.Params.Arguments) == `{"Do":"gone"}`, c.also != "" && req.Method == c.also:
					w.WriteHeader(http.StatusNotFound)
					_, _ = io.WriteString(w, strings.ReplaceAll(c.body, "%s", string(req.ID)))
					return true
				case string(req.Params.Arguments) == `{"Do":"args","hang":true}`:
					close(hangs)
					<-release
				}
				return false
			})
			h := ready(t, s, mcp.Options{Backoff: time.Hour})
			beside := make(chan error, 1)
			go func() {
				_, err := h.call("a", `{"Do":"args","hang":true}`)
				beside <- err
			}()
			<-hangs
			for range 5 {
				_, err := h.call("a", `{"Do":"gone"}`)
				is404(t, err, c.body)
				h.must("a", do("args", nil))
			}
			close(release)
			if err := <-beside; err != nil {
				t.Errorf("the call beside it: %v", err)
			}
			if s := h.Server(); s.Restarts != 0 || s.State != gateway.StateReady || greetings.Load() != 1 {
				t.Errorf("greeted %d times, afterwards %+v", greetings.Load(), s)
			}
		})
	}
}

func is404(t *testing.T, err error, body string) {
	t.Helper()
	var p *gateway.ProtocolError
	switch {
	case body[0] == '{':
		if !errors.As(err, &p) || p.Code != -32602 || p.Message != "no such thing" {
			t.Errorf("%v", err)
		}
	case signalbox.CodeOf(err) != signalbox.CodeToolFailed || !strings.Contains(err.Error(), "HTTP 404 Not Found to the call"):
		t.Errorf("%v", err)
	}
}

// TestCallFailsIfNewSessionIsLostToo: the call is sent twice and not again.
func TestCallFailsIfNewSessionIsLostToo(t *testing.T) {
	var broken atomic.Bool
	var calls atomic.Int32
	s := rawHTTP(t, func(w http.ResponseWriter, _ *http.Request, req request) bool {
		switch req.Method {
		case "tools/call":
			broken.Store(calls.Add(1) < 3)
		case "initialize":
			broken.Store(false)
		}
		if broken.Load() {
			http.Error(w, "", http.StatusNotFound)
		}
		return broken.Load()
	})
	h := ready(t, s, mcp.Options{Backoff: time.Hour})
	if msg := h.fails(signalbox.CodeToolDown, "a", do("args", nil)); !strings.Contains(msg, "forgotten the session") || calls.Load() != 2 {
		t.Errorf("%s, after %d calls", msg, calls.Load())
	}
	h.must("a", do("args", nil))
}
