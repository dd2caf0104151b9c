// Package gateway runs the standalone tool gateway, over HTTP or for one MCP client on
// standard input and output. It also runs the bridge, which serves the tools of a director
// to such a client.
package gateway

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"slices"

	"github.com/signalbox-ai/signalbox/internal/config"
	"github.com/signalbox-ai/signalbox/internal/engine"
	"github.com/signalbox-ai/signalbox/internal/execution"
	"github.com/signalbox-ai/signalbox/internal/execution/push"
	"github.com/signalbox-ai/signalbox/internal/httpapi"
	"github.com/signalbox-ai/signalbox/internal/identity"
	"github.com/signalbox-ai/signalbox/internal/lifecycle"
	"github.com/signalbox-ai/signalbox/internal/roles"
	"github.com/signalbox-ai/signalbox/internal/seal"
	"github.com/signalbox-ai/signalbox/internal/serve"
	"github.com/signalbox-ai/signalbox/internal/serve/tools"
	"github.com/signalbox-ai/signalbox/internal/telemetry"
	"github.com/signalbox-ai/signalbox/internal/toolconf"
)

// Run runs a gateway, or a bridge to a director, until ctx ends or its client disconnects.
func Run(ctx context.Context, p serve.Program, cfg config.Config, o roles.Gateway) error {
	if o.Bridge != nil {
		return serve.UnlessStopped(ctx, runBridge(ctx, p, cfg, o))
	}
	g, err := open(ctx, p, cfg, o.Streams)
	if err != nil {
		return serve.UnlessStopped(ctx, err)
	}
	defer serve.Stop(&g.running, g.log)
	if !o.Stdio {
		return serve.UnlessStopped(ctx, g.serve(ctx))
	}
	if err := g.start(ctx); err != nil {
		return serve.UnlessStopped(ctx, err)
	}
	fmt.Fprintf(o.Err, "signalbox gateway: tools of this process's own configuration; no other process shares their capacity\n")
	return serve.UnlessStopped(ctx, serveStdio(ctx, &waiting{starting: g.tools.Gateway}, o, g.tools.Endpoint))
}

// standalone is a gateway without a director: the same HTTP API and limits for tools,
// over a store in memory.
type standalone struct {
	version string
	cfg     config.Config
	log     *slog.Logger
	out     roles.Streams
	engine  *engine.Engine
	metrics *telemetry.Metrics
	push    *push.Dispatcher // without agents: only prunes tool tasks
	tools   *tools.Tools
	running lifecycle.Group
}

// open builds the gateway. After an error nothing stays open.
func open(ctx context.Context, p serve.Program, cfg config.Config, out roles.Streams) (_ *standalone, err error) {
	log, err := serve.NewLogger(out.Err, cfg)
	if err != nil {
		return nil, err
	}
	if err := serve.StaticToken(&cfg, log); err != nil {
		return nil, err
	}
	if err := refuseShared(cfg.Tools); err != nil {
		return nil, err
	}
	key := make([]byte, seal.KeyBytes)
	_, _ = rand.Read(key) // never fails
	sealer, err := seal.New(key)
	if err != nil {
		return nil, err
	}
	g := &standalone{version: p.Version, cfg: cfg, log: log, out: out}
	g.engine = engine.New(p.EmptyStore(), engine.Options{Log: log, Sealer: sealer, MaxCommands: cfg.Commands.MaxWaiting})
	telemetry.LogTasks(g.engine, log)
	g.push = push.New(g.engine, push.Options{Options: execution.Options{Log: log}, Keep: serve.Keep(&cfg.Queue)})
	g.metrics = telemetry.NewMetrics(g.engine)
	otel := serve.StartOTel(ctx, &g.running, log, telemetry.OTelOptions{Gatherer: g.metrics.Gatherer(), Version: p.Version})
	g.tools, err = tools.New(cfg, tools.Options{
		Version: p.Version, Engine: g.engine, Metrics: g.metrics, Traces: otel.Traces(), Trace: otel.Tasks(g.engine).Context, Log: log,
	})
	if err != nil {
		serve.Stop(&g.running, log)
		return nil, err
	}
	g.running.Defer(g.push.Stop)
	g.running.Close("tools", g.tools.Close)
	return g, nil
}

// refuseShared returns an error for queues that are configured as shared: a standalone
// gateway has no store to share them through.
func refuseShared(c toolconf.Config) error {
	var errs []error
	for _, name := range slices.Sorted(maps.Keys(c.Queues)) {
		if q := c.Queues[name]; q.Shared {
			errs = append(errs, fmt.Errorf("%s: queues.%s.shared: a standalone gateway has no store to share a tool queue through: "+
				"use the tools of a director (signalbox director, or signalbox gateway --stdio on its host), or remove shared", q.Where, name))
		}
	}
	return errors.Join(errs...)
}

// start starts tools and tasks.
func (g *standalone) start(ctx context.Context) error {
	if err := g.tools.Start(ctx); err != nil {
		return err
	}
	return g.push.Start(ctx)
}

// serve serves HTTP until ctx ends.
func (g *standalone) serve(ctx context.Context) error {
	if err := serve.OwnerToken(&g.cfg, config.Home(os.LookupEnv)); err != nil {
		return err
	}
	listener, err := serve.ListenUntil(ctx, &g.running, g.cfg.Addr)
	if err != nil {
		return err
	}
	id, err := identity.New(ctx, nil, identity.Options{Static: g.cfg.Token, Now: g.engine.Now, Log: g.log})
	if err != nil {
		return err
	}
	c := httpapi.Config{
		Engine: g.engine, Identity: id, Token: g.cfg.Token, Hosts: g.cfg.Hosts, Addr: listener.Addr().String(),
		Version: g.version, Log: g.log, Metrics: g.metrics, ToolsOnly: true, Doctor: g.tools.Looks(), AgentName: g.cfg.Commands.AgentName,
	}
	g.tools.Into(&c)
	api, err := httpapi.New(c)
	if err != nil {
		return err
	}
	g.metrics.Readers(api)
	if err := g.start(ctx); err != nil {
		return err
	}
	url := serve.URL(listener)
	if err := serve.AnnounceGateway(g.cfg, url); err != nil {
		return err
	}
	defer serve.Withdraw(url)
	g.log.Info("gateway ready", "url", url, "open", id.Open())
	fmt.Fprintf(g.out.Out, "Signalbox gateway at %s\n", url)
	tools.Describe(g.out.Out, g.cfg.Tools, url, serve.BridgeCommand+" --director "+url, id.Open())
	serve.Follow(ctx, &g.running, &g.cfg, config.Follow{Log: g.log, Read: g.tools.Reload})
	return api.Serve(ctx, listener)
}
