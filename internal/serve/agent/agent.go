// Package agent runs an agent: the daemon, which registers with a director or pulls from
// one, and the tokens with which both authenticate to each other.
package agent

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"strings"
	"sync/atomic"
	"time"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/api"
	"github.com/signalbox-ai/signalbox/internal/agentd"
	"github.com/signalbox-ai/signalbox/internal/agentd/runner"
	"github.com/signalbox-ai/signalbox/internal/config"
	"github.com/signalbox-ai/signalbox/internal/identity"
	"github.com/signalbox-ai/signalbox/internal/lifecycle"
	"github.com/signalbox-ai/signalbox/internal/proc"
	"github.com/signalbox-ai/signalbox/internal/roles"
	"github.com/signalbox-ai/signalbox/internal/serve"
	"github.com/signalbox-ai/signalbox/internal/serve/hook"
	"github.com/signalbox-ai/signalbox/internal/telemetry"
)

// File is the content of <data>/agents/<name>/agent.json. With it signalbox up finds an
// agent that this or an earlier up started.
type File struct {
	URL   string `json:"url"`
	PID   int    `json:"pid"`
	Name  string `json:"name"`
	Kind  string `json:"kind"`
	Token string `json:"token"`
	Proof bool   `json:"proof"` // the agent proves that it knows the token
}

// Folder is the folder of an agent in a data folder.
func Folder(data, name string) string { return filepath.Join(data, "agents", name) }

func filePath(folder string) string { return filepath.Join(folder, "agent.json") }

// ReadFile reads the file of an agent.
func ReadFile(data, name string) (f File, err error) {
	return f, serve.ReadJSON(filePath(Folder(data, name)), &f)
}

// execLogEnv names a file to which each execution writes its start and end. Tests use it
// to prove that no two executions overlap.
const execLogEnv = "SIGNALBOX_EXEC_LOG"

// LingerEnv is the variable with how long an idle agent stays after its last request. An
// agent with it does not register. It is set for children of signalbox up, which outlive a
// crash of up, but not for ever.
const LingerEnv = "SIGNALBOX_AGENT_LINGER"

// process is an agent with its settings.
type process struct {
	version string
	cfg     config.Config
	o       roles.Agent
	folder  string
	log     *slog.Logger
	running lifecycle.Group
}

// Run runs an agent until ctx ends.
func Run(ctx context.Context, p serve.Program, cfg config.Config, o roles.Agent) error {
	proc.KeepPrivate()
	log, err := serve.NewLogger(o.Err, cfg)
	if err != nil {
		return err
	}
	a := &process{version: p.Version, o: o, log: log}
	defer serve.Stop(&a.running, log)
	return serve.UnlessStopped(ctx, a.run(ctx, cfg))
}

func (p *process) run(ctx context.Context, cfg config.Config) error {
	p.cfg = cfg.For(cmp.Or(cfg.Agent.Kind, defaultKind()))
	a := &p.cfg.Agent
	a.Name = cmp.Or(a.Name, a.Kind)
	if os.Geteuid() == 0 && a.Kind != "demo" {
		p.log.Warn("this agent runs as root: everybody who may submit to it has every right on this machine", "cure", "run it as a user of its own")
	}
	p.folder = Folder(cfg.Data, a.Name)
	if (a.Kind == "demo" || a.Kind == "llm") && a.WorkDir == "" {
		// A demo agent touches no files: two of them need not take turns in a folder.
		a.WorkDir = filepath.Join(p.folder, "work")
		if err := os.MkdirAll(a.WorkDir, 0o700); err != nil {
			return err
		}
	}
	if err := CanRun(*a); err != nil {
		return err
	}
	if err := p.getToken(ctx); err != nil {
		return err
	}
	if a.Pull {
		return p.pull(ctx)
	}
	return p.serve(ctx)
}

// serve runs an agent that the director connects to.
func (p *process) serve(ctx context.Context) error {
	a := &p.cfg.Agent
	if len(a.Directors) > 0 {
		return fmt.Errorf("agent.directors: only an agent that pulls can have several directors: add --pull, or name one with --director")
	}
	if !serve.IsLoopback(a.Addr) {
		switch {
		case a.Token == "" && p.cfg.Open:
			return fmt.Errorf("an agent on %s, which others can reach, needs a token: everybody who can reach it could run prompts; leave out --open, or give --addr 127.0.0.1:9000", a.Addr)
		case a.Token != "" && len(a.Token) < identity.PublicToken:
			return fmt.Errorf("the token of an agent on %s, which others can reach, has %d characters and can be guessed: leave out agent.token to have one made, or give one of %d or more", a.Addr, len(a.Token), identity.PublicToken)
		}
	}
	if a.Token == "" && !p.cfg.Open {
		a.Token = inboundToken(p.folder)
	}
	linger, err := lingering()
	if err != nil {
		return err
	}
	listener, err := serve.ListenUntil(ctx, &p.running, a.Addr)
	if err != nil {
		return err
	}
	daemon, err := p.daemon(ctx)
	if err != nil {
		return err
	}
	file := File{URL: serve.URL(listener), PID: os.Getpid(), Name: a.Name, Kind: a.Kind, Token: a.Token, Proof: a.Token != ""}
	if err := serve.WriteJSON(filePath(p.folder), file); err != nil {
		return errors.Join(err, daemon.Close())
	}
	fmt.Fprintf(p.o.Out, "Signalbox agent %s (%s) at %s\n", a.Name, a.Kind, file.URL)
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	contact := &contactListener{Listener: hook.Agent(listener)}
	contact.touch()
	p.running.Go(ctx, func(ctx context.Context) {
		if linger > 0 {
			contact.endWhenIdle(ctx, daemon, linger, stop)
		} else {
			p.keepRegistered(ctx, daemon, file)
		}
	})
	return daemon.Serve(ctx, contact)
}

// daemon returns the daemon, whose step limit follows the configuration.
func (p *process) daemon(ctx context.Context) (*agentd.Daemon, error) {
	otel := serve.StartOTel(ctx, &p.running, p.log, telemetry.OTelOptions{Service: "signalbox-agent", Version: p.version})
	c := p.daemonConfig()
	c.Traces = otel.Traces()
	daemon, err := agentd.New(c)
	if err != nil {
		return nil, fmt.Errorf("agent %s: %w", c.Name, err)
	}
	p.followSteps(ctx, c.Runner.LLM.Steps)
	return daemon, nil
}

// CanRun returns an error if the agent's program is missing, or if concurrent coding runs
// would share one folder.
func CanRun(a config.Agent) error {
	if runner.SpeaksMCP(a.Kind) && a.Slots > 1 && a.Workspace.Kind != signalbox.WorkspaceWorktree && a.Workspace.Kind != signalbox.WorkspaceClone {
		return fmt.Errorf("agent %s: slots is %d, but its runs would share one folder, and those beyond the first would work in an empty one: give each task a git worktree (--workspace worktree), or start another agent with a folder of its own (signalbox agent --name %s-2 --kind %s --workdir DIR)", a.Name, a.Slots, a.Name, a.Kind)
	}
	program := a.Kind
	switch {
	case a.Kind == "command" && len(a.Command) > 0:
		program = a.Command[0]
		if !filepath.IsAbs(program) && strings.ContainsRune(program, filepath.Separator) {
			program = filepath.Join(a.WorkDir, program) // as in its runs
		}
	case !runner.SpeaksMCP(a.Kind):
		return nil
	}
	if strings.ContainsAny(program, "{}") { // the name comes from the task
		return nil
	}
	if _, err := exec.LookPath(program); err != nil {
		return fmt.Errorf("agent %s: %q is not installed or not on PATH: install it, or choose another kind with --kind: %w", a.Name, program, err)
	}
	return nil
}

func lingering() (time.Duration, error) {
	text := os.Getenv(LingerEnv)
	if text == "" {
		return 0, nil
	}
	d, err := time.ParseDuration(text)
	if err != nil || d <= 0 {
		return 0, fmt.Errorf("%s: want a duration above 0, such as 10m, got %q", LingerEnv, text)
	}
	return d, nil
}

func (p *process) daemonConfig() agentd.Config {
	a := p.cfg.Agent
	c := agentd.Config{
		Name: a.Name, Kind: a.Kind, Version: p.version, DataDir: p.folder,
		WorkDir: a.WorkDir, Workspace: agentd.Workspace(a.Workspace), Landing: agentd.Landing(a.Landing), ProjectRoots: a.ProjectRoots, Home: a.Home, Slots: a.Slots, IsolatedSlots: a.IsolatedSlots, Model: a.Model,
		Account: a.Account, Tools: a.Tools, Token: a.Token, Pull: a.Pull, Hosts: p.cfg.Hosts, DefaultTimeout: a.Timeout, PassEnv: a.PassEnv, TaskEnv: a.TaskEnv,
		Runner:   RunnerOptions(a),
		Terminal: a.Terminal, TerminalCommand: a.TerminalCommand, TerminalIdle: a.TerminalIdle,
		ExecLog: os.Getenv(execLogEnv), Logger: p.log,
	}
	c.Checks = agentd.Checks{
		List: taskChecks(a.Checks), Retries: a.CheckRetries, From: a.TaskChecks,
		Repository: func(top string) ([]api.TaskCheck, error) {
			list, err := config.RepositoryChecks(top, os.LookupEnv)
			return taskChecks(list), err
		},
	}
	if p.o.Known {
		c.Director = p.o.Director
	}
	return c
}

func taskChecks(list []signalbox.Check) []api.TaskCheck {
	var out []api.TaskCheck
	for _, c := range list {
		out = append(out, api.TaskCheck(c))
	}
	return out
}

// RunnerOptions returns the options of an agent's runner.
func RunnerOptions(a config.Agent) runner.Options {
	o := runner.Options{Permission: a.PermissionMode, Tiers: a.Tiers, ExtraArgs: a.Args, Command: a.Command, LimitWait: a.LimitWait, Prices: runner.Prices{}}
	for model, p := range a.Prices {
		o.Prices[model] = runner.Price(p)
	}
	if l := a.LLM; a.Kind == "llm" {
		o.LLM = runner.LLM{
			Provider: l.Provider, BaseURL: l.BaseURL, APIKey: l.APIKey, System: l.System, MaxTokens: l.MaxTokens, MaxTurns: l.MaxTurns,
			Tools: l.Tools, Allowed: l.Allowed, Exempt: l.Exempt, Approval: l.Approval,
			Steps: runner.NewSteps(l.MaxParallelToolCalls, l.MinParallelToolCalls), OverLimit: l.OverLimit,
		}
	}
	return o
}

// defaultKind is the first coding CLI on PATH, else the demo agent.
func defaultKind() string {
	if found := runner.OnPath(); len(found) > 0 {
		return found[0].Kind
	}
	return "demo"
}

// followSteps makes the step limit of an agent of kind llm follow the configuration file.
// Agents of other kinds have no settings that may change while they run.
func (p *process) followSteps(ctx context.Context, steps *runner.Steps) {
	if steps == nil || p.cfg.File == "" {
		return
	}
	kind, was := p.cfg.Agent.Kind, p.cfg.Agent.LLM
	serve.Follow(ctx, &p.running, &p.cfg, config.Follow{Log: p.log, Read: func(fresh config.Config) {
		fresh = fresh.For(kind)
		is := fresh.Agent.LLM
		steps.Set(is.MaxParallelToolCalls, is.MinParallelToolCalls)
		p.log.Info("step limit changed, for new steps", "max_parallel_tool_calls", is.MaxParallelToolCalls, "min_parallel_tool_calls", is.MinParallelToolCalls)
		is.MaxParallelToolCalls, is.MinParallelToolCalls = was.MaxParallelToolCalls, was.MinParallelToolCalls
		if !reflect.DeepEqual(is, was) {
			p.log.Warn("agent.llm has changed in the configuration: all changes except the step limit need a restart")
		}
	}})
}

// contactListener records when a client last sent anything.
type contactListener struct {
	net.Listener
	last atomic.Int64 // Unix ns
}

func (l *contactListener) touch() { l.last.Store(time.Now().UnixNano()) }

func (l *contactListener) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return contactConn{c, l}, nil
}

type contactConn struct {
	net.Conn
	l *contactListener
}

func (c contactConn) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	if n > 0 {
		c.l.touch()
	}
	return n, err
}

// endWhenIdle stops an agent that is idle and got no request for the duration linger.
func (l *contactListener) endWhenIdle(ctx context.Context, d *agentd.Daemon, linger time.Duration, stop func()) {
	tick := time.Tick(max(linger/10, 100*time.Millisecond))
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick:
		}
		now := d.Status()
		if silent := time.Since(time.Unix(0, l.last.Load())); silent > linger && now.State == "idle" && len(now.Terminals) == 0 {
			stop()
			return
		}
	}
}
