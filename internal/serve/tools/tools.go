// Package tools builds the tool gateway of a director or of a standalone gateway from
// its configuration, with its MCP endpoint and the executor of calls that become tasks.
package tools

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"time"

	"go.opentelemetry.io/otel/trace"

	"github.com/signalbox-ai/signalbox/internal/command"
	"github.com/signalbox-ai/signalbox/internal/config"
	"github.com/signalbox-ai/signalbox/internal/confine"
	"github.com/signalbox-ai/signalbox/internal/doctor"
	"github.com/signalbox-ai/signalbox/internal/engine"
	"github.com/signalbox-ai/signalbox/internal/execution/local"
	"github.com/signalbox-ai/signalbox/internal/gateway"
	commands "github.com/signalbox-ai/signalbox/internal/gateway/command"
	"github.com/signalbox-ai/signalbox/internal/gateway/endpoint"
	"github.com/signalbox-ai/signalbox/internal/gateway/mcp"
	"github.com/signalbox-ai/signalbox/internal/gateway/openapi"
	"github.com/signalbox-ai/signalbox/internal/gateway/queuetools"
	"github.com/signalbox-ai/signalbox/internal/gateway/rest"
	"github.com/signalbox-ai/signalbox/internal/httpapi"
	"github.com/signalbox-ai/signalbox/internal/serve"
	"github.com/signalbox-ai/signalbox/internal/serve/hook"
	"github.com/signalbox-ai/signalbox/internal/telemetry"
	"github.com/signalbox-ai/signalbox/internal/toolconf"
	"github.com/signalbox-ai/signalbox/toolqueue"
)

// Tools is the gateway of a process, its MCP endpoint, and the executor of the calls
// that become tasks.
type Tools struct {
	Gateway  *gateway.Gateway
	Tasks    *local.Executor
	Endpoint endpoint.Options // of all MCP endpoints of the process

	queues *toolqueue.Queues
	read   map[string]toolqueue.Config // queues in the file when it was last read
	mcp    *endpoint.Endpoint
	host   *confine.Host // nil: there are no command tools
	config toolconf.Config
	queue  *queuetools.Tools
	log    *slog.Logger
}

// Options are the dependencies of Tools.
type Options struct {
	Version string
	Engine  *engine.Engine
	Metrics *telemetry.Metrics
	Traces  trace.TracerProvider
	Trace   func(ctx context.Context, queueID string) context.Context // adds the trace of a running task
	Queue   *queuetools.Tools                                         // nil: a standalone gateway, which has no queue
	Log     *slog.Logger

	// For one of several directors: its name, its peers and shared tool queues.
	Instance string
	Peers    local.Peers        // nil: a single director
	Share    *toolqueue.Sharing // nil: a single director
}

// New builds the tools of a configuration. Nothing runs before Start. Always Close them.
func New(cfg config.Config, o Options) (_ *Tools, err error) {
	logNotes(cfg.Tools.Notes, o.Log)
	counts := o.Metrics.Tools(cfg.SeedMetrics)
	queues := toolqueue.New(gateway.Hooks(o.Log, counts.Hooks()))
	if o.Share != nil {
		if err := queues.Share(*o.Share); err != nil {
			return nil, err
		}
	}
	if !cfg.Tools.Empty() {
		if err := queues.Configure(cfg.Tools.ToolQueues()); err != nil {
			return nil, err
		}
	}
	counts.Watch(queues)
	t := &Tools{queues: queues, read: cfg.Tools.ToolQueues(), queue: o.Queue, log: o.Log, config: cfg.Tools}
	defer func() {
		if err != nil && t.host != nil {
			_ = t.host.Close() // nothing has run in it
		}
	}()
	providers, err := t.providers(cfg, o)
	if err != nil {
		return nil, err
	}
	var calls gateway.CallLog
	ended := func(e gateway.Ended) { counts.Ended(e); calls.Ended(e) }
	t.Gateway, err = gateway.New(gateway.Options{Queues: queues, Providers: hook.Tools(providers), Log: o.Log, Ended: ended, Traces: o.Traces, Keys: keys(cfg.Tools.Queues)})
	if err != nil {
		return nil, err
	}
	t.Tasks = local.New(local.Options{
		Engine: o.Engine, Gateway: t.Gateway, Instance: o.Instance, Peers: o.Peers, Trace: o.Trace, Retention: cfg.Queue.Retention, Log: o.Log,
		Concurrent: cmp.Or(cfg.Commands.MaxConcurrent, cfg.Tools.MaxConcurrent, local.DefaultConcurrent),
	})
	o.Engine.AddLive(t.Tasks)
	o.Engine.SetToolCalls(gateway.Calling(queues), calls.Of)
	t.Endpoint = endpoint.Options{Version: o.Version, Log: o.Log, Tasks: t.Tasks, TaskAfter: cfg.Commands.TaskAfter, AgentName: cfg.Commands.AgentName}
	if o.Queue != nil {
		t.Endpoint.Instructions = instructions
	}
	t.mcp = endpoint.New(t.Gateway, t.Endpoint)
	return t, nil
}

// instructions tell a model what the tools of the queue are for.
const instructions = "Hand work to other agents with submit_task (list_agents shows them), and follow it with task_status and task_output; " +
	"ask an agent and read its answer with chat_with_agent. A tool that answers \"Task … queued with id …\" goes on by itself: " +
	"task_status has its result. queue_status shows what waits, cancel_task stops a task."

func logNotes(notes []toolconf.Note, log *slog.Logger) {
	for _, n := range notes {
		level := slog.LevelInfo
		if n.Warning {
			level = slog.LevelWarn
		}
		log.Log(context.Background(), level, n.String())
	}
}

// providers makes the providers of a configuration.
func (t *Tools) providers(cfg config.Config, o Options) (all []gateway.Provider, err error) {
	for _, s := range cfg.Tools.Servers {
		all = append(all, mcp.New(s, mcp.Options{Log: o.Log, Version: o.Version}))
	}
	if len(cfg.Tools.Rest) > 0 {
		p, err := rest.New(cfg.Tools.Rest)
		if err != nil {
			return nil, err
		}
		all = append(all, p)
	}
	for _, d := range cfg.Tools.OpenAPI {
		all = append(all, openapi.New(d, openapi.Options{Log: o.Log}))
	}
	if len(cfg.Tools.Commands) > 0 {
		p, err := t.commands(cfg, o)
		if err != nil {
			return nil, err
		}
		all = append(all, p)
	}
	if o.Queue != nil {
		all = append(all, o.Queue)
	}
	return all, nil
}

// commands makes the provider of the command tools. The control group of their runs is
// named after the store, and after the director if there are several, so that a director
// finds processes that an earlier one left.
func (t *Tools) commands(cfg config.Config, o Options) (gateway.Provider, error) {
	name := "signalbox-" + o.Engine.Info().ID
	if o.Peers != nil {
		name += "-" + o.Instance
	}
	host, err := confine.Open(confine.Options{Name: name, Method: cfg.Commands.Limits, Hidden: []string{cfg.Data}, Log: o.Log})
	if err != nil {
		return nil, fmt.Errorf("commands.limits: %w", err)
	}
	t.host = host
	tools := make([]*command.Tool, len(cfg.Tools.Commands))
	var errs []error
	for i, c := range cfg.Tools.Commands {
		tools[i], err = command.New(c, command.Options{Host: host, AgentName: cfg.Commands.AgentName, Log: o.Log})
		errs = append(errs, err)
	}
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	return commands.New(tools, commands.Options{Log: o.Log}), nil
}

// Start starts the servers, which connect in the background, and the executor, which first
// ends or takes over the tasks of an earlier one.
func (t *Tools) Start(ctx context.Context) error {
	if err := t.Gateway.Start(ctx); err != nil {
		return err
	}
	return t.Tasks.Start(ctx)
}

// Wake makes the waiting calls of shared tool queues check at once whether another director
// has freed a slot. It does not block.
func (t *Tools) Wake() { t.queues.Notify() }

// releaseTimeout limits the wait for the store to record that slots of shared tool queues
// are free.
const releaseTimeout = 3 * time.Second

// Close ends all calls, tasks, sessions and servers, with their child processes, and
// gives back the slots of shared tool queues: the store must still be open.
func (t *Tools) Close() error {
	t.Tasks.Stop()
	err := errors.Join(t.mcp.Close(), t.Gateway.Close())
	ctx, cancel := context.WithTimeout(context.Background(), releaseTimeout)
	defer cancel()
	err = errors.Join(err, t.queues.Close(ctx))
	if t.host != nil {
		err = errors.Join(err, t.host.Close())
	}
	return err
}

// Into adds the tools to the configuration of an HTTP API.
func (t *Tools) Into(c *httpapi.Config) {
	c.Tools, c.ToolTasks, c.MCP, c.QueueTools = t.Gateway, t.Tasks, t.mcp, t.queue
}

// Looks returns doctor's checks of tools, apart from those of their servers.
func (t *Tools) Looks() []httpapi.DoctorCheck {
	if t.host == nil {
		return nil
	}
	return []httpapi.DoctorCheck{doctor.Limits(t.host.Report(), t.config.Commands)}
}

// Describe prints which tools there are and how an MCP client is connected to them: to
// url if it is open, else through the command bridge.
func Describe(out io.Writer, c toolconf.Config, url, bridge string, open bool) {
	if c.Empty() {
		return
	}
	var have []string
	add := func(n int, one, many string, names []string) {
		if n == 0 {
			return
		}
		text := fmt.Sprintf("%d %s", n, many)
		if n == 1 {
			text = "1 " + one
		}
		if len(names) > 0 {
			text += " (" + serve.List(names) + ")"
		}
		have = append(have, text)
	}
	var servers, commands, queues []string
	for _, s := range c.Servers {
		servers = append(servers, s.Name)
	}
	for i := range c.Commands {
		commands = append(commands, c.Commands[i].Name)
	}
	add(len(servers), "MCP server", "MCP servers", servers)
	add(len(commands), "command", "commands", commands)
	add(len(c.Rest), "REST tool", "REST tools", nil)
	add(len(c.OpenAPI), "OpenAPI description", "OpenAPI descriptions", nil)
	for _, name := range slices.Sorted(maps.Keys(c.Queues)) {
		queues = append(queues, fmt.Sprintf("%s %d", name, c.Queues[name].Concurrent))
	}
	fmt.Fprintf(out, "  %-9s %s · queues %s\n", "tools", strings.Join(have, ", "), serve.List(queues))
	client := "--transport http signalbox " + url + "/mcp"
	if !open { // the bridge finds the token by itself, without exposing it in arguments
		client = "signalbox -- " + bridge
	}
	fmt.Fprintf(out, "  %-9s   claude mcp add %s\n", "", client)
}

// keys returns what the limits of each queue apply to, for queues with limits per caller,
// session or value.
func keys(queues map[string]toolconf.Queue) map[string]gateway.KeyOf {
	out := map[string]gateway.KeyOf{}
	for name, q := range queues {
		switch q.Per {
		case toolconf.PerCaller:
			out[name] = gateway.KeyOfCaller
		case toolconf.PerSession:
			out[name] = gateway.KeyOfSession
		case toolconf.PerArgument:
			out[name] = gateway.KeyOfArgument(q.Argument)
		}
	}
	return out
}
