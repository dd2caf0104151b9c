package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"

	"go.opentelemetry.io/otel/trace"

	"github.com/signalbox-ai/signalbox/internal/config"
	"github.com/signalbox-ai/signalbox/internal/director"
	"github.com/signalbox-ai/signalbox/internal/gateway"
	"github.com/signalbox-ai/signalbox/internal/gateway/endpoint"
	"github.com/signalbox-ai/signalbox/internal/gateway/mcp"
	"github.com/signalbox-ai/signalbox/internal/gateway/openapi"
	"github.com/signalbox-ai/signalbox/internal/gateway/rest"
	"github.com/signalbox-ai/signalbox/internal/telemetry"
	"github.com/signalbox-ai/signalbox/internal/toolconf"
	"github.com/signalbox-ai/signalbox/toolqueue"
)

// toolbox is the gateway of a process with its ways in. A nil toolbox has no
// tools.
type toolbox struct {
	gateway *gateway.Gateway
	mcp     *endpoint.Endpoint
	log     *slog.Logger
}

// newToolbox makes the gateway of a configuration; nil where that has no tools.
// Nothing runs before start.
func newToolbox(cfg config.Config, metrics *telemetry.Metrics, traces trace.TracerProvider, log *slog.Logger) (*toolbox, error) {
	for _, n := range cfg.Tools.Notes {
		level := slog.LevelInfo
		if n.Warning {
			level = slog.LevelWarn
		}
		log.Log(context.Background(), level, n.String())
	}
	if cfg.Tools.Empty() {
		return nil, nil
	}
	counts := metrics.Tools(cfg.SeedMetrics)
	queues := toolqueue.New(gateway.Hooks(log, counts.Hooks()))
	if err := queues.Configure(cfg.Tools.ToolQueues()); err != nil {
		return nil, err
	}
	counts.Watch(queues)
	providers, err := toolProviders(cfg.Tools, log)
	if err != nil {
		return nil, err
	}
	g, err := gateway.New(gateway.Options{Queues: queues, Providers: providers, Log: log, Ended: counts.Ended, Traces: traces})
	if err != nil {
		return nil, err
	}
	return &toolbox{gateway: g, log: log, mcp: endpoint.New(g, endpointOptions(log))}, nil
}

func endpointOptions(log *slog.Logger) endpoint.Options {
	return endpoint.Options{Version: version, Log: log}
}

// toolProviders makes the providers of a configuration.
func toolProviders(c toolconf.Config, log *slog.Logger) ([]gateway.Provider, error) {
	var all []gateway.Provider
	for _, s := range c.Servers {
		all = append(all, mcp.New(s, mcp.Options{Log: log, Version: version}))
	}
	if len(c.Rest) > 0 {
		p, err := rest.New(c.Rest)
		if err != nil {
			return nil, err
		}
		all = append(all, p)
	}
	for _, d := range c.OpenAPI {
		all = append(all, openapi.New(d, openapi.Options{Log: log}))
	}
	return all, nil
}

// start starts the servers; they connect in the background.
func (t *toolbox) start(ctx context.Context) error {
	if t == nil {
		return nil
	}
	return t.gateway.Start(ctx)
}

// close ends all calls, sessions and servers, with their children.
func (t *toolbox) close() {
	if t == nil {
		return
	}
	if err := errors.Join(t.mcp.Close(), t.gateway.Close()); err != nil {
		t.log.Error("the tools did not end as they should", "error", err)
	}
}

// into hands the tools to a director. A nil toolbox leaves it without: a nil
// pointer in an interface would not be nil.
func (t *toolbox) into(c *director.Config) {
	if t != nil {
		c.Tools, c.MCP = t.gateway, t.mcp
	}
}

// describeTools prints what tools there are, and how a program is pointed at
// them.
func describeTools(out streams, c toolconf.Config, url string, open bool) {
	if c.Empty() {
		return
	}
	var have []string
	if len(c.Servers) > 0 {
		names := make([]string, len(c.Servers))
		for i, s := range c.Servers {
			names[i] = s.Name
		}
		have = append(have, counted(len(names), "MCP server", "MCP servers")+" ("+someOf(names)+")")
	}
	if len(c.Rest) > 0 {
		have = append(have, counted(len(c.Rest), "REST tool", "REST tools"))
	}
	if len(c.OpenAPI) > 0 {
		have = append(have, counted(len(c.OpenAPI), "OpenAPI description", "OpenAPI descriptions"))
	}
	var queues []string
	for _, name := range sortedNames(c.Queues) {
		queues = append(queues, fmt.Sprintf("%s %d", name, c.Queues[name].Concurrent))
	}
	fmt.Fprintf(out.Out, "  %-9s %s · queues %s\n", "tools", strings.Join(have, ", "), someOf(queues))
	header := ""
	if !open {
		header = ` --header "Authorization: Bearer TOKEN"`
	}
	fmt.Fprintf(out.Out, "  %-9s   claude mcp add --transport http signalbox %s/mcp%s\n", "", url, header)
}
