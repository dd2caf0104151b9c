package mcp_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/internal/gateway"
	"github.com/signalbox-ai/signalbox/internal/gateway/mcp"
	"github.com/signalbox-ai/signalbox/internal/testkit"
	"github.com/signalbox-ai/signalbox/internal/toolconf"
)

// soon bounds what should happen quickly, on a busy machine.
const soon = 2 * time.Minute

// rig is a provider under test.
type rig struct {
	*mcp.Provider
	t       *testing.T
	changed chan struct{}
	log     *logs
}

// logs collects log lines.
type logs struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *logs) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *logs) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

// child runs the test binary as a server.
func child(role string, env ...string) toolconf.Server {
	s := toolconf.Server{Name: "srv", Transport: toolconf.Stdio, Command: os.Args[0], Shared: true, HealthProbe: "ping", Queue: "default",
		Env: map[string]string{roleVar: role, "GORACE": "atexit_sleep_ms=0"}}
	for _, kv := range env {
		k, v, _ := strings.Cut(kv, "=")
		s.Env[k] = v
	}
	return s
}

// start runs a provider until the test ends.
func start(t *testing.T, s toolconf.Server, opts mcp.Options) *rig {
	t.Helper()
	h := &rig{t: t, changed: make(chan struct{}, 100), log: &logs{}}
	opts.Log = slog.New(slog.NewTextHandler(h.log, &slog.HandlerOptions{Level: slog.LevelDebug}))
	if opts.Backoff == 0 {
		opts.Backoff = 10 * time.Millisecond
	}
	h.Provider = mcp.New(s, opts)
	if err := h.Start(context.Background(), func() {
		select {
		case h.changed <- struct{}{}:
		default:
		}
	}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := h.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
		if t.Failed() {
			t.Logf("log:\n%.4000s", h.log)
		}
	})
	return h
}

// ready starts a provider and waits for its tools.
func ready(t *testing.T, s toolconf.Server, opts mcp.Options) *rig {
	t.Helper()
	h := start(t, s, opts)
	h.until(func(s gateway.Server) bool { return s.State == gateway.StateReady })
	return h
}

// until waits until the server's status satisfies ok.
func (h *rig) until(ok func(gateway.Server) bool) gateway.Server {
	h.t.Helper()
	var s gateway.Server
	testkit.Wait(h.t, "the server has the wanted state", func() bool { s = h.Server(); return ok(s) })
	return s
}

func (h *rig) ctx() context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), soon)
	h.t.Cleanup(cancel)
	return ctx
}

func (h *rig) call(tool, args string) (gateway.Result, error) {
	return h.Call(h.ctx(), gateway.Call{Tool: "srv__" + tool, Arguments: json.RawMessage(args)})
}

// must calls a tool and expects an answer.
func (h *rig) must(tool, args string) gateway.Result {
	h.t.Helper()
	r, err := h.call(tool, args)
	if err != nil {
		h.t.Fatalf("%s: %v", tool, err)
	}
	return r
}

// fails calls a tool, expects an error with this code, and returns its
// message.
func (h *rig) fails(code signalbox.Code, tool, args string) string {
	h.t.Helper()
	r, err := h.call(tool, args)
	var e *signalbox.Error
	if !errors.As(err, &e) || e.Code != code {
		h.t.Fatalf("%s: %s, %v; want the error %s", tool, r.Content, err, code)
	}
	return e.Error()
}

// do returns the arguments for a raw server's tool.
func do(what string, more map[string]any) string {
	m := map[string]any{"Do": what}
	for k, v := range more {
		m[k] = v
	}
	b, _ := json.Marshal(m)
	return string(b)
}
