package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"time"

	"go.opentelemetry.io/otel/trace"

	"github.com/signalbox-ai/signalbox/internal/command"
	"github.com/signalbox-ai/signalbox/internal/config"
	"github.com/signalbox-ai/signalbox/internal/confine"
	"github.com/signalbox-ai/signalbox/internal/director"
	"github.com/signalbox-ai/signalbox/internal/doctor"
	"github.com/signalbox-ai/signalbox/internal/engine"
	"github.com/signalbox-ai/signalbox/internal/execution/local"
	"github.com/signalbox-ai/signalbox/internal/gateway"
	commands "github.com/signalbox-ai/signalbox/internal/gateway/command"
	"github.com/signalbox-ai/signalbox/internal/gateway/endpoint"
	"github.com/signalbox-ai/signalbox/internal/gateway/mcp"
	"github.com/signalbox-ai/signalbox/internal/gateway/openapi"
	"github.com/signalbox-ai/signalbox/internal/gateway/rest"
	"github.com/signalbox-ai/signalbox/internal/telemetry"
	"github.com/signalbox-ai/signalbox/internal/toolconf"
	"github.com/signalbox-ai/signalbox/toolqueue"
)

// toolbox is the gateway of a process with its ways in, and the executor of
// the calls that become tasks.
type toolbox struct {
	queues   *toolqueue.Queues
	gateway  *gateway.Gateway
	tasks    *local.Executor
	mcp      *endpoint.Endpoint
	endpoint endpoint.Options // of all MCP endpoints of the process
	host     *confine.Host    // nil: there are no command tools
	declared []toolconf.CommandTool
	conf     toolconf.Config // that it was made of
	queue    *director.QueueTools
	log      *slog.Logger
}

// parts are what a toolbox stands on.
type parts struct {
	engine  *engine.Engine
	metrics *telemetry.Metrics
	traces  trace.TracerProvider
	trace   func(ctx context.Context, queueID string) context.Context // of a task that runs
	queue   *director.QueueTools                                      // nil: a gateway alone, which has no queue
	share   *toolqueue.Sharing                                        // by which shared tool queues are those of all directors; nil: there is one
	log     *slog.Logger

	instance string      // of the director; "": it is the only one
	peers    local.Peers // nil: there is none but this
}

// newToolbox makes the gateway of a configuration. Nothing runs before start.
func newToolbox(cfg config.Config, p parts) (_ *toolbox, err error) {
	noteTools(cfg.Tools.Notes, p.log)
	counts := p.metrics.Tools(cfg.SeedMetrics)
	queues := toolqueue.New(gateway.Hooks(p.log, counts.Hooks()))
	if p.share != nil {
		if err := queues.Share(*p.share); err != nil {
			return nil, err
		}
	}
	if !cfg.Tools.Empty() {
		if err := queues.Configure(cfg.Tools.ToolQueues()); err != nil {
			return nil, err
		}
	}
	counts.Watch(queues)
	t := &toolbox{queues: queues, queue: p.queue, log: p.log, conf: cfg.Tools}
	defer func() {
		if err != nil && t.host != nil {
			_ = t.host.Close() // nothing has run in it
		}
	}()
	providers, err := toolProviders(cfg.Tools, p.log)
	if err != nil {
		return nil, err
	}
	if len(cfg.Tools.Commands) > 0 {
		commands, err := t.commands(cfg, p)
		if err != nil {
			return nil, err
		}
		providers = append(providers, commands)
	}
	if p.queue != nil {
		providers = append(providers, p.queue)
	}
	t.gateway, err = gateway.New(gateway.Options{Queues: queues, Providers: hookTools(providers), Log: p.log, Ended: counts.Ended, Traces: p.traces})
	if err != nil {
		return nil, err
	}
	t.tasks = local.New(local.Options{
		Engine: p.engine, Gateway: t.gateway, Instance: p.instance, Peers: p.peers, Trace: p.trace, Retention: cfg.Queue.Retention, Log: p.log,
		Concurrent: cmp.Or(cfg.Commands.MaxConcurrent, cfg.Tools.MaxConcurrent, local.DefaultConcurrent),
	})
	p.engine.AddLive(t.tasks)
	p.engine.SetCalls(gateway.Calling(queues))
	t.endpoint = endpointOptions(p.log)
	if p.queue != nil {
		t.endpoint.Instructions = instructions
	}
	t.endpoint.Tasks, t.endpoint.TaskAfter, t.endpoint.AgentName = t.tasks, cfg.Commands.TaskAfter, cfg.Commands.AgentName
	t.mcp = endpoint.New(t.gateway, t.endpoint)
	return t, nil
}

// instructions tell a model what the queue's own tools are for.
const instructions = "Hand work to other agents with submit_task (list_agents shows them), and follow it with task_status and task_output; " +
	"ask an agent and read its answer with chat_with_agent. A tool that answers \"Task … queued with id …\" goes on by itself: " +
	"task_status has its result. queue_status shows what waits, cancel_task stops a task."

func noteTools(notes []toolconf.Note, log *slog.Logger) {
	for _, n := range notes {
		level := slog.LevelInfo
		if n.Warning {
			level = slog.LevelWarn
		}
		log.Log(context.Background(), level, n.String())
	}
}

// commands makes the provider of the command tools. The control group of their
// runs is named after the store, and the director where there are several, so
// that a director finds what one before it left there.
func (t *toolbox) commands(cfg config.Config, p parts) (gateway.Provider, error) {
	name := "signalbox-" + p.engine.Info().ID
	if p.peers != nil {
		name += "-" + p.instance
	}
	host, err := confine.Open(confine.Options{Name: name, Method: cfg.Commands.Limits, Hidden: []string{cfg.Data}, Log: p.log})
	if err != nil {
		return nil, fmt.Errorf("commands.limits: %w", err)
	}
	t.host, t.declared = host, cfg.Tools.Commands
	tools := make([]*command.Tool, len(cfg.Tools.Commands))
	var errs []error
	for i, c := range cfg.Tools.Commands {
		tools[i], err = command.New(c, command.Options{Host: host, AgentName: cfg.Commands.AgentName, Log: p.log})
		errs = append(errs, err)
	}
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	return commands.New(tools, commands.Options{Log: p.log}), nil
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

// start starts the servers, which connect in the background, and the executor,
// which deals with what one before it left.
func (t *toolbox) start(ctx context.Context) error {
	if err := t.gateway.Start(ctx); err != nil {
		return err
	}
	return t.tasks.Start(ctx)
}

// stir says that another director may have done something: calls that wait in
// a shared tool queue look at once. It does not block.
func (t *toolbox) stir() { t.queues.Stir() }

// givingBack bounds how long the end waits for the store to hear of the slots
// of shared tool queues that are free.
const givingBack = 3 * time.Second

// close ends all calls, tasks, sessions and servers, with their children, and
// gives back what it has of shared tool queues: the store must still be there.
func (t *toolbox) close() {
	if t == nil {
		return
	}
	t.tasks.Stop()
	err := errors.Join(t.mcp.Close(), t.gateway.Close())
	ctx, cancel := context.WithTimeout(context.Background(), givingBack)
	defer cancel()
	err = errors.Join(err, t.queues.Close(ctx))
	if t.host != nil {
		err = errors.Join(err, t.host.Close())
	}
	if err != nil {
		t.log.Error("the tools did not end as they should", "error", err)
	}
}

// into hands the tools to a director.
func (t *toolbox) into(c *director.Config) {
	c.Tools, c.ToolTasks, c.MCP, c.QueueTools = t.gateway, t.tasks, t.mcp, t.queue
}

// looks are what doctor looks at of them beyond their servers.
func (t *toolbox) looks() []director.DoctorCheck {
	if t.host == nil {
		return nil
	}
	return []director.DoctorCheck{doctor.Limits(t.host.Report(), t.declared)}
}

// describeTools prints what tools there are, and how a program is pointed at
// them: at url where it is open, else by the command bridge.
func describeTools(out streams, c toolconf.Config, url, bridge string, open bool) {
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
	if len(c.Commands) > 0 {
		names := make([]string, len(c.Commands))
		for i := range c.Commands {
			names[i] = c.Commands[i].Name
		}
		have = append(have, counted(len(names), "command", "commands")+" ("+someOf(names)+")")
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
	add := "--transport http signalbox " + url + "/mcp"
	if !open { // the bridge finds the token by itself, and shows it to nobody in its arguments
		add = "signalbox -- " + bridge
	}
	fmt.Fprintf(out.Out, "  %-9s   claude mcp add %s\n", "", add)
}

func counted(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, many)
}

// someOf is a list that fits a line.
func someOf(words []string) string {
	const most = 8
	if len(words) > most {
		return strings.Join(words[:most], ", ") + fmt.Sprintf(" and %d more", len(words)-most)
	}
	return strings.Join(words, ", ")
}

func sortedNames[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
