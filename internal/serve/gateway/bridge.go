package gateway

import (
	"context"
	"crypto/rand"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"os"
	"strings"
	"sync"
	"time"
	"unicode"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/internal/config"
	"github.com/signalbox-ai/signalbox/internal/gateway"
	"github.com/signalbox-ai/signalbox/internal/gateway/endpoint"
	"github.com/signalbox-ai/signalbox/internal/gateway/mcp"
	"github.com/signalbox-ai/signalbox/internal/handshake"
	"github.com/signalbox-ai/signalbox/internal/roles"
	"github.com/signalbox-ai/signalbox/internal/serve"
	"github.com/signalbox-ai/signalbox/internal/toolconf"
)

// executionEnv is set in the environment of an agent's runs.
const executionEnv = "SIGNALBOX_QUEUE_ID"

// bridge serves the tools of a director to a client on standard input and output.
// Calls wait in the queues of the director, which it shares with all other callers.
type bridge struct {
	*mcp.Provider

	mu       sync.Mutex
	onChange func() // callback of the client; nil: none
}

// bridgeHeaders are sent with each request of a bridge.
func bridgeHeaders(to roles.Bridge) map[string]string {
	headers := map[string]string{"X-Signalbox-Session": "stdio-" + rand.Text()}
	if to.Token != "" {
		headers["Authorization"] = "Bearer " + to.Token
	}
	if id := os.Getenv(executionEnv); to.Execution && signalbox.ValidID(id) {
		headers["X-Signalbox-Execution"] = id
	}
	if trace := os.Getenv("TRACEPARENT"); trace != "" && !strings.ContainsFunc(trace, unicode.IsControl) {
		headers["Traceparent"] = trace
	}
	return headers
}

func newBridge(to roles.Bridge, headers map[string]string, version string, log *slog.Logger) *bridge {
	return &bridge{Provider: mcp.New(toolconf.Server{
		Name: "director", Transport: toolconf.HTTP, URL: to.URL + "/mcp", Headers: headers, Shared: true, HealthProbe: "ping",
	}, mcp.Options{Log: log, Version: version, OwnNames: true, Prove: to.Token, Backoff: 200 * time.Millisecond})}
}

// OnChange implements endpoint.Gateway.
func (b *bridge) OnChange(f func()) (stop func()) {
	b.set(f)
	return func() { b.set(nil) }
}

func (b *bridge) set(f func()) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.onChange = f
}

func (b *bridge) changed() {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.onChange != nil {
		b.onChange()
	}
}

// Servers implements starting: the only server is the director.
func (b *bridge) Servers() []gateway.Server { return []gateway.Server{b.Server()} }

// runBridge serves the tools of a director.
func runBridge(ctx context.Context, p serve.Program, cfg config.Config, o roles.Gateway) error {
	log, err := serve.NewLogger(o.Err, cfg)
	if err != nil {
		return err
	}
	headers := bridgeHeaders(*o.Bridge)
	b := newBridge(*o.Bridge, headers, p.Version, log)
	if err := b.Start(ctx, b.changed); err != nil {
		return err
	}
	fmt.Fprintf(o.Err, "signalbox gateway: tools of the director at %s, whose queues all its callers share\n", o.Bridge.URL)
	err = serveStdio(ctx, &waiting{starting: b}, o, endpoint.Options{Version: p.Version, Log: log, Relay: &endpoint.Relay{
		URL: o.Bridge.URL + "/mcp", Headers: headers,
		Client: &http.Client{Transport: handshake.ToDirector(http.DefaultTransport, o.Bridge.URL, o.Bridge.Token)},
	}})
	if closed := b.Close(); closed != nil {
		log.Error("the connection to the director was not closed cleanly", "error", closed)
	}
	return err
}

// serveStdio serves one client until it disconnects or ctx ends.
func serveStdio(ctx context.Context, gw endpoint.Gateway, o roles.Gateway, options endpoint.Options) error {
	caller := gateway.Caller{Session: "stdio:" + rand.Text(), Execution: os.Getenv(executionEnv)}
	return endpoint.ServeStdio(ctx, gw, caller, io.NopCloser(o.In), nopCloser{o.Out}, options)
}

// nopCloser is an output that stays open.
type nopCloser struct{ io.Writer }

func (nopCloser) Close() error { return nil }

// startWait is how long the first list of tools waits for servers that are starting.
// Many clients ask only once, at their start.
const startWait = 15 * time.Second

// starting is a gateway whose servers may be starting.
type starting interface {
	endpoint.Gateway
	Servers() []gateway.Server
}

// waiting is a gateway that answers once its servers have started, or failed to.
type waiting struct {
	starting
	once sync.Once
}

// Tools implements endpoint.Gateway.
func (w *waiting) Tools() []gateway.Tool {
	w.once.Do(w.wait)
	return w.starting.Tools()
}

// Call implements endpoint.Gateway. A client that knows the tools may call one without
// listing them.
func (w *waiting) Call(ctx context.Context, c gateway.Call) (gateway.Result, error) {
	w.once.Do(w.wait)
	return w.starting.Call(ctx, c)
}

func (w *waiting) wait() {
	tick := time.Tick(20 * time.Millisecond)
	for until := time.Now().Add(startWait); time.Now().Before(until); <-tick {
		ready := true
		for _, s := range w.Servers() {
			ready = ready && s.State != gateway.StateStarting
		}
		if ready {
			return
		}
	}
}
