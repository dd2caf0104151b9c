package main

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
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/signalbox-ai/signalbox/api"
	"github.com/signalbox-ai/signalbox/client"
	"github.com/signalbox-ai/signalbox/internal/agentd"
	"github.com/signalbox-ai/signalbox/internal/agentd/runner"
	"github.com/signalbox-ai/signalbox/internal/cli"
	"github.com/signalbox-ai/signalbox/internal/config"
	"github.com/signalbox-ai/signalbox/internal/identity"
	"github.com/signalbox-ai/signalbox/internal/proc"
	"github.com/signalbox-ai/signalbox/internal/telemetry"
)

// agentFile is <data>/agents/<name>/agent.json, by which signalbox up finds
// an agent that it started, also one that an earlier up started.
type agentFile struct {
	URL   string `json:"url"`
	PID   int    `json:"pid"`
	Name  string `json:"name"`
	Kind  string `json:"kind"`
	Token string `json:"token"`
	Proof bool   `json:"proof"` // it proves that it knows the token
}

func agentFolder(data, name string) string { return filepath.Join(data, "agents", name) }

func agentFilePath(data, name string) string {
	return filepath.Join(agentFolder(data, name), "agent.json")
}

// execLogEnv names a file to which each execution writes its start and end;
// tests prove with it that no two overlap.
const execLogEnv = "SIGNALBOX_EXEC_LOG"

// lingerEnv says that the agent ends by itself after nobody has asked it
// anything for that long and nothing runs; it then does not register either.
// The children of signalbox up have it: so they outlive a crash of it, and
// nothing outlives it for ever.
const lingerEnv = "SIGNALBOX_AGENT_LINGER"

// runAgent is the agent role.
func runAgent(ctx context.Context, cfg config.Config, o cli.AgentOptions) error {
	proc.KeepPrivate()
	log, err := newLogger(o.Err, cfg)
	if err != nil {
		return err
	}
	kind := cfg.Agent.Kind
	if kind == "" {
		kind = defaultKind()
	}
	cfg = cfg.For(kind)
	a := &cfg.Agent
	a.Name = cmp.Or(a.Name, a.Kind)
	if os.Geteuid() == 0 && a.Kind != "demo" {
		log.Warn("this agent runs as root: whoever may submit to it has every right on this machine", "cure", "run it as a user of its own")
	}
	folder := agentFolder(cfg.Data, a.Name)
	if (a.Kind == "demo" || a.Kind == "llm") && a.WorkDir == "" {
		// It touches nothing: two such agents need not take turns in a folder.
		a.WorkDir = filepath.Join(folder, "work")
		if err := os.MkdirAll(a.WorkDir, 0o700); err != nil {
			return err
		}
	}
	if err := canRun(*a); err != nil {
		return err
	}
	if o, err = asItself(ctx, o, a.Name, folder, log); err != nil {
		return unlessStopped(ctx, err)
	}
	if a.Pull {
		return pullAgent(ctx, cfg, o, folder, log)
	}
	if len(a.Directors) > 0 {
		return fmt.Errorf("agent.directors: only an agent that pulls asks several directors: add --pull, or name one with --director")
	}
	if host, _, err := net.SplitHostPort(a.Addr); err == nil && !isLoopback(host) {
		switch {
		case a.Token == "" && cfg.Open:
			return fmt.Errorf("an agent on %s, which others can reach, needs a token: whoever reaches it can run prompts; leave out --open, or give --addr 127.0.0.1:9000", a.Addr)
		case a.Token != "" && len(a.Token) < identity.PublicToken:
			return fmt.Errorf("the token of an agent on %s, which others can reach, has %d characters and can be guessed: leave agent.token out and one is made, or give one of %d or more", a.Addr, len(a.Token), identity.PublicToken)
		}
	}
	if a.Token == "" && !cfg.Open {
		a.Token = inboundToken(agentFilePath(cfg.Data, a.Name))
	}
	linger, err := lingering()
	if err != nil {
		return err
	}
	listener, err := listen(ctx, a.Addr)
	if err != nil {
		return err
	}
	defer func() { _ = listener.Close() }() // Serve has closed it already, unless it was not reached
	otel := telemetry.StartOTel(ctx, telemetry.OTelOptions{Service: "signalbox-agent", Version: version, Log: log})
	defer closeOTel(otel, log)
	c := daemonConfig(cfg, o, folder, log)
	c.Traces = otel.Traces()
	daemon, err := agentd.New(c)
	if err != nil {
		return fmt.Errorf("agent %s: %w", a.Name, err)
	}
	file := agentFile{URL: "http://" + reachable(listener.Addr()), PID: os.Getpid(), Name: a.Name, Kind: a.Kind, Token: a.Token, Proof: a.Token != ""}
	if err := writeJSON(agentFilePath(cfg.Data, a.Name), file); err != nil {
		return errors.Join(err, daemon.Close())
	}
	fmt.Fprintf(o.Out, "Signalbox agent %s (%s) at %s\n", a.Name, a.Kind, file.URL)
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	contact := &contactListener{Listener: hookAgent(listener)}
	contact.touch()
	var beside sync.WaitGroup
	if linger > 0 {
		beside.Go(func() { contact.endWhenForgotten(ctx, daemon, linger, stop) })
	} else {
		beside.Go(func() { keepRegistered(ctx, log, o, folder, daemon, file) })
	}
	beside.Go(followSteps(ctx, &cfg, c.Runner.LLM.Steps, log))
	err = daemon.Serve(ctx, contact)
	stop()
	beside.Wait() // the farewell, which is bounded
	return err
}

// canRun refuses an agent whose program is not there, or which would give the
// second of two coding runs an empty folder.
func canRun(a config.Agent) error {
	if runner.SpeaksMCP(a.Kind) && a.Slots > 1 {
		return fmt.Errorf("agent %s: slots is %d, but its runs would share one folder, and those beyond the first would work in an empty one: for a second run side by side start another agent with a folder of its own (signalbox agent --name %s-2 --kind %s --workdir DIR)", a.Name, a.Slots, a.Name, a.Kind)
	}
	program := a.Kind
	switch {
	case a.Kind == "command" && len(a.Command) > 0:
		program = a.Command[0]
		if !filepath.IsAbs(program) && strings.ContainsRune(program, filepath.Separator) {
			program = filepath.Join(a.WorkDir, program) // as for its runs
		}
	case !runner.SpeaksMCP(a.Kind):
		return nil
	}
	if strings.ContainsAny(program, "{}") { // it is made of the task
		return nil
	}
	if _, err := exec.LookPath(program); err != nil {
		return fmt.Errorf("agent %s: %q is not installed or not on PATH: install it, or choose another kind with --kind: %w", a.Name, program, err)
	}
	return nil
}

func lingering() (time.Duration, error) {
	text := os.Getenv(lingerEnv)
	if text == "" {
		return 0, nil
	}
	d, err := time.ParseDuration(text)
	if err != nil || d <= 0 {
		return 0, fmt.Errorf("%s: want a duration above 0, such as 10m, got %q", lingerEnv, text)
	}
	return d, nil
}

func daemonConfig(cfg config.Config, o cli.AgentOptions, folder string, log *slog.Logger) agentd.Config {
	a := cfg.Agent
	c := agentd.Config{
		Name: a.Name, Kind: a.Kind, Version: version, DataDir: folder,
		WorkDir: a.WorkDir, ProjectRoots: a.ProjectRoots, Home: a.Home, Slots: a.Slots, IsolatedSlots: a.IsolatedSlots, Model: a.Model,
		Tools: a.Tools, Token: a.Token, Hosts: cfg.Hosts, DefaultTimeout: a.Timeout, PassEnv: a.PassEnv, TaskEnv: a.TaskEnv,
		Runner:   runnerOptions(a),
		Terminal: a.Terminal, TerminalCommand: a.TerminalCommand, TerminalIdle: a.TerminalIdle,
		ExecLog: os.Getenv(execLogEnv), Logger: log,
	}
	if o.Known {
		c.Director = o.Director
	}
	return c
}

func runnerOptions(a config.Agent) runner.Options {
	o := runner.Options{Permission: a.PermissionMode, Tiers: a.Tiers, ExtraArgs: a.Args, Command: a.Command}
	if a.Kind == "llm" {
		o.LLM = llmOptions(a.LLM)
	}
	return o
}

func llmOptions(o config.LLM) runner.LLM {
	return runner.LLM{
		Provider: o.Provider, BaseURL: o.BaseURL, APIKey: o.APIKey, System: o.System, MaxTokens: o.MaxTokens, MaxTurns: o.MaxTurns,
		Tools: o.Tools, Allowed: o.Allowed, Exempt: o.Exempt, Approval: o.Approval,
		Steps: runner.NewSteps(o.MaxParallelToolCalls, o.MinParallelToolCalls), OverLimit: o.OverLimit,
	}
}

// defaultKind is the first coding CLI on PATH, else the demo agent.
func defaultKind() string {
	if found := runner.OnPath(); len(found) > 0 {
		return found[0].Kind
	}
	return "demo"
}

// keepRegistered announces the agent to its director and goes on telling it
// that the agent lives: at the interval it asks for, and at once when what
// the agent does changes.
func keepRegistered(ctx context.Context, log *slog.Logger, o cli.AgentOptions, folder string, d *agentd.Daemon, f agentFile) {
	o, err := directorOf(ctx, o, f.Name, folder, log)
	if err != nil {
		if ctx.Err() == nil {
			log.Error("not registered", "error", err)
		}
		return
	}
	c, err := client.New(o.Director, client.Options{Token: o.Token})
	if err != nil {
		log.Error("not registered", "director", o.Director, "error", err)
		return
	}
	known := false
	for told := ""; ctx.Err() == nil; wait(ctx, 2*time.Second) {
		s := d.Status()
		_, err := c.RegisterAgent(ctx, api.RegisterAgent{
			Name: f.Name, Kind: f.Kind, URL: f.URL, Slots: s.Slots, Fencing: true, Proof: s.Proof, Token: f.Token, Version: s.Version, WorkDir: s.WorkDir,
		})
		if err == nil {
			log.Info("registered", "director", o.Director, "name", f.Name)
			told, known = "", true
			err = beat(ctx, c, d, f)
		}
		if client.Code(err) == "unauthorized" {
			if again, ok := anotherToken(ctx, o, f.Name, folder, log); ok {
				o = again
				if c, err = client.New(o.Director, client.Options{Token: o.Token}); err == nil {
					continue
				}
			}
		}
		if ctx.Err() == nil && err != nil && err.Error() != told {
			told = err.Error() // once, not every two seconds
			log.Warn("director not reached, trying again", "director", o.Director, "error", err, "cure", agentd.Cure(err, f.Name))
		}
	}
	if known {
		farewell(ctx, log, c, f)
	}
}

// farewell tells the director that the agent stops, so that nothing is offered
// to it meanwhile and nobody waits to learn that it is gone.
func farewell(ctx context.Context, log *slog.Logger, c *client.Client, f agentFile) {
	const patience = 2 * time.Second
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), patience)
	defer cancel()
	if _, err := c.Heartbeat(ctx, f.Name, api.Heartbeat{State: "stopping", URL: f.URL}); err != nil {
		log.Info("the director was not told that this agent stops", "error", err) // it will find out
	}
}

// beat sends heartbeats until one fails.
func beat(ctx context.Context, c *client.Client, d *agentd.Daemon, f agentFile) error {
	interval := 10 * time.Second
	for {
		changed := d.Changed()
		s := d.Status()
		answer, err := c.Heartbeat(ctx, f.Name, api.Heartbeat{State: s.State, URL: f.URL, CurrentTasks: s.CurrentTasks})
		if err != nil {
			return err
		}
		if answer.IntervalSeconds > 0 {
			interval = time.Duration(answer.IntervalSeconds) * time.Second
		}
		timer := time.NewTimer(interval)
		select {
		case <-changed:
		case <-timer.C:
		case <-ctx.Done():
		}
		timer.Stop()
		if ctx.Err() != nil {
			return ctx.Err()
		}
	}
}

func wait(ctx context.Context, d time.Duration) {
	select {
	case <-time.After(d):
	case <-ctx.Done():
	}
}

// contactListener remembers when anyone last sent anything.
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

// endWhenForgotten ends an idle agent that nobody has asked anything for the
// time it lingers.
func (l *contactListener) endWhenForgotten(ctx context.Context, d *agentd.Daemon, linger time.Duration, stop func()) {
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
