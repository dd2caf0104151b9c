package main

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"strings"
	"sync"
	"time"
	"unicode"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/internal/cli"
	"github.com/signalbox-ai/signalbox/internal/config"
	"github.com/signalbox-ai/signalbox/internal/director"
	"github.com/signalbox-ai/signalbox/internal/engine"
	"github.com/signalbox-ai/signalbox/internal/execution"
	"github.com/signalbox-ai/signalbox/internal/execution/push"
	"github.com/signalbox-ai/signalbox/internal/gateway"
	"github.com/signalbox-ai/signalbox/internal/gateway/endpoint"
	"github.com/signalbox-ai/signalbox/internal/gateway/mcp"
	"github.com/signalbox-ai/signalbox/internal/handshake"
	"github.com/signalbox-ai/signalbox/internal/identity"
	"github.com/signalbox-ai/signalbox/internal/seal"
	"github.com/signalbox-ai/signalbox/internal/store/memory"
	"github.com/signalbox-ai/signalbox/internal/telemetry"
	"github.com/signalbox-ai/signalbox/internal/toolconf"
)

// bridgeCommand serves the tools of a director or gateway of the same user to
// one MCP client.
const bridgeCommand = "signalbox gateway --stdio"

// standaloneGateway is a gateway without a director around it: the same gate, the same
// limits and the same routes for tools, over a store that holds nothing.
type standaloneGateway struct {
	cfg      config.Config
	log      *slog.Logger
	listener net.Listener
	engine   *engine.Engine
	metrics  *telemetry.Metrics
	otel     *telemetry.OTel
	push     *push.Dispatcher // of no agent: it looks after the tasks of tools
	tools    *toolbox
}

// openStandalone makes the gateway; what was opened is closed again where that
// fails.
func openStandalone(ctx context.Context, cfg config.Config, out streams) (g *standaloneGateway, err error) {
	log, err := newLogger(out.Err, cfg)
	if err != nil {
		return nil, err
	}
	if err := staticToken(&cfg, log); err != nil {
		return nil, err
	}
	if err := unshared(cfg.Tools); err != nil {
		return nil, err
	}
	g = &standaloneGateway{cfg: cfg, log: log}
	key := make([]byte, seal.KeyBytes)
	_, _ = rand.Read(key) // it never fails
	sealer, err := seal.New(key)
	if err != nil {
		return nil, err
	}
	g.engine = engine.New(memory.New(memory.Options{}), engine.Options{Log: log, Sealer: sealer, MaxCommands: cfg.Commands.MaxWaiting})
	g.push = push.New(g.engine, push.Options{Options: execution.Options{Log: log}, Keep: keep(&cfg.Queue)})
	g.metrics = telemetry.NewMetrics(g.engine)
	defer func() {
		if err != nil {
			g.close()
			g = nil
		}
	}()
	g.otel = startOTel(ctx, g.metrics, log)
	g.tools, err = newToolbox(cfg, parts{engine: g.engine, metrics: g.metrics, traces: g.otel.Traces(), trace: g.otel.Tasks(g.engine).Context, log: log})
	return g, err
}

// unshared refuses queues that are to be shared with other processes: there is
// nothing to share them by.
func unshared(c toolconf.Config) error {
	var errs []error
	for _, name := range sortedNames(c.Queues) {
		if q := c.Queues[name]; q.Shared {
			errs = append(errs, fmt.Errorf("%s: queues.%s.shared: a gateway that stands alone has no store by which to share a tool queue: "+
				"use the tools of a director (signalbox director, or signalbox gateway --stdio beside one), or take shared out", q.Where, name))
		}
	}
	return errors.Join(errs...)
}

func startOTel(ctx context.Context, m *telemetry.Metrics, log *slog.Logger) *telemetry.OTel {
	return telemetry.StartOTel(ctx, telemetry.OTelOptions{Gatherer: m.Gatherer(), Version: version, Log: log})
}

// closeOTel sends what is left; nil was not started.
func closeOTel(o *telemetry.OTel, log *slog.Logger) {
	if o == nil {
		return
	}
	if err := o.Close(); err != nil {
		log.Warn("what OpenTelemetry had left was not sent", "error", err)
	}
}

// serve answers over HTTP until ctx ends.
func (g *standaloneGateway) serve(ctx context.Context, out streams) (err error) {
	if err := ownerToken(&g.cfg, config.Home(os.LookupEnv)); err != nil {
		return err
	}
	if g.listener, err = listen(ctx, g.cfg.Addr); err != nil {
		return err
	}
	id, err := identity.New(ctx, nil, identity.Options{Static: g.cfg.Token, Now: g.engine.Now, Log: g.log})
	if err != nil {
		return err
	}
	c := director.Config{
		Engine: g.engine, Identity: id, Token: g.cfg.Token, Hosts: g.cfg.Hosts, Addr: g.listener.Addr().String(),
		Version: version, Log: g.log, Metrics: g.metrics, ToolsOnly: true, Doctor: g.tools.looks(), AgentName: g.cfg.Commands.AgentName,
	}
	g.tools.into(&c)
	d, err := director.New(c)
	if err != nil {
		return err
	}
	g.metrics.Readers(d)
	if err := g.start(ctx); err != nil {
		return err
	}
	url := "http://" + reachable(g.listener.Addr())
	if err := announceGateway(g.cfg, url); err != nil {
		return err
	}
	defer withdraw(url)
	g.log.Info("gateway ready", "url", url, "open", id.Open())
	fmt.Fprintf(out.Out, "Signalbox gateway at %s\n", url)
	describeTools(out, g.cfg.Tools, url, bridgeCommand+" --director "+url, id.Open())
	ctx, stop := context.WithCancel(ctx)
	followed := followFile(ctx, &g.cfg, config.Follow{Log: g.log, Read: g.tools.reread})
	defer followed()
	defer stop()
	return d.Serve(ctx, g.listener)
}

// start begins to run tools and tasks.
func (g *standaloneGateway) start(ctx context.Context) error {
	if err := g.tools.start(ctx); err != nil {
		return err
	}
	return g.push.Start(ctx)
}

func (g *standaloneGateway) close() {
	g.tools.close()
	g.push.Stop()
	if g.listener != nil {
		_ = g.listener.Close() // serving has closed it already, unless it was not reached
	}
	closeOTel(g.otel, g.log)
}

// runGateway is the gateway role.
func runGateway(ctx context.Context, cfg config.Config, o cli.GatewayOptions) error {
	out := streams{o.Out, o.Err}
	if o.Bridge != nil {
		return runBridge(ctx, cfg, o)
	}
	g, err := openStandalone(ctx, cfg, out)
	if err != nil {
		return unlessStopped(ctx, err)
	}
	defer g.close()
	if !o.Stdio {
		return unlessStopped(ctx, g.serve(ctx, out))
	}
	if err := g.start(ctx); err != nil {
		return unlessStopped(ctx, err)
	}
	fmt.Fprintf(o.Err, "signalbox gateway: tools of this process's own configuration; their capacity is shared with nobody else\n")
	return unlessStopped(ctx, serveStdio(ctx, settled(g.tools.gateway), o, g.tools.endpoint))
}

// executionEnv is set in the environment of what an agent runs.
const executionEnv = "SIGNALBOX_QUEUE_ID"

// bridge has the tools of a director for a client on stdin and stdout. It has
// no queues: calls wait in those of the director, which they share with all
// others.
type bridge struct {
	*mcp.Provider

	mu        sync.Mutex
	listeners map[int]func()
	next      int
}

// bridgeHeaders are those of all requests of a bridge.
func bridgeHeaders(to cli.Bridge) map[string]string {
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

func newBridge(to cli.Bridge, headers map[string]string, log *slog.Logger) *bridge {
	return &bridge{listeners: map[int]func(){}, Provider: mcp.New(toolconf.Server{
		Name: "director", Transport: toolconf.HTTP, URL: to.URL + "/mcp", Headers: headers, Shared: true, HealthProbe: "ping",
	}, mcp.Options{Log: log, Version: version, OwnNames: true, Prove: to.Token, Backoff: 200 * time.Millisecond})}
}

// OnChange implements endpoint.Gateway.
func (b *bridge) OnChange(f func()) (stop func()) {
	b.mu.Lock()
	defer b.mu.Unlock()
	id := b.next
	b.next++
	b.listeners[id] = f
	return func() {
		b.mu.Lock()
		defer b.mu.Unlock()
		delete(b.listeners, id)
	}
}

func (b *bridge) changed() {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, f := range b.listeners {
		f()
	}
}

// Servers is the director, for settled.
func (b *bridge) Servers() []gateway.Server { return []gateway.Server{b.Server()} }

// runBridge serves the tools of a director.
func runBridge(ctx context.Context, cfg config.Config, o cli.GatewayOptions) error {
	log, err := newLogger(o.Err, cfg)
	if err != nil {
		return err
	}
	headers := bridgeHeaders(*o.Bridge)
	b := newBridge(*o.Bridge, headers, log)
	if err := b.Start(ctx, b.changed); err != nil {
		return err
	}
	fmt.Fprintf(o.Err, "signalbox gateway: tools of the director at %s, whose queues all its callers share\n", o.Bridge.URL)
	options := endpointOptions(log)
	options.Relay = &endpoint.Relay{
		URL: o.Bridge.URL + "/mcp", Headers: headers,
		Client: &http.Client{Transport: handshake.ToDirector(http.DefaultTransport, o.Bridge.URL, o.Bridge.Token)},
	}
	err = serveStdio(ctx, settled(b), o, options)
	if closed := b.Close(); closed != nil {
		log.Error("the connection to the director did not end as it should", "error", closed)
	}
	return unlessStopped(ctx, err)
}

// serveStdio serves one client until it goes or ctx ends.
func serveStdio(ctx context.Context, gw endpoint.Gateway, o cli.GatewayOptions, options endpoint.Options) error {
	caller := gateway.Caller{Session: "stdio:" + rand.Text(), Execution: os.Getenv(executionEnv)}
	return endpoint.ServeStdio(ctx, gw, caller, io.NopCloser(o.In), nopCloser{o.Out}, options)
}

// nopCloser is an output that is not ours to close.
type nopCloser struct{ io.Writer }

func (nopCloser) Close() error { return nil }

// startWait is how long the first list of tools waits for servers that start
// with the process. Many clients ask once, at once, and keep the answer.
const startWait = 15 * time.Second

// starting has servers that may still be about to start.
type starting interface {
	endpoint.Gateway
	Servers() []gateway.Server
}

// waiting answers with its tools when its servers have started, or failed to.
type waiting struct {
	starting
	once sync.Once
}

func settled(s starting) *waiting { return &waiting{starting: s} }

// Tools implements endpoint.Gateway.
func (w *waiting) Tools() []gateway.Tool {
	w.once.Do(w.wait)
	return w.starting.Tools()
}

// Call implements endpoint.Gateway: a client that knows its tools does not ask
// for them.
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
