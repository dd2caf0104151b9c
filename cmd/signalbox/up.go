package main

import (
	"bytes"
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/api"
	"github.com/signalbox-ai/signalbox/internal/agentd/runner"
	"github.com/signalbox-ai/signalbox/internal/cli"
	"github.com/signalbox-ai/signalbox/internal/config"
	"github.com/signalbox-ai/signalbox/internal/proc"
)

// runUp is the director with an agent for each coding CLI on PATH, else the
// demo agent, as child processes.
func runUp(ctx context.Context, cfg config.Config, o cli.UpOptions) error {
	proc.KeepPrivate()
	s, err := openService(ctx, cfg, config.Home(os.LookupEnv), streams{o.Out, o.Err})
	if err != nil {
		return unlessStopped(ctx, err)
	}
	defer s.close()
	children := newChildren(s, o.Kinds)
	var keepers sync.WaitGroup
	keeping, stopKeeping := context.WithCancel(context.WithoutCancel(ctx))
	err = s.run(ctx, func(ctx context.Context) error {
		fmt.Fprintf(o.Out, "Signalbox at %s (data %s)\n", s.url, cfg.Data)
		var err error
		if children, err = startable(ctx, children); err != nil {
			return err
		}
		for _, c := range children {
			keepers.Go(func() { c.keep(keeping) })
			c.describe()
		}
		describeTools(s.out, cfg.Tools, s.url, bridgeCommand, s.identity.Open())
		self := asTyped(os.Args[0], exec.LookPath)
		fmt.Fprintf(o.Out, "\nSubmit a prompt from another terminal:\n  %s submit --wait \"say hello\"\n\nWatch it at %s, or with %s top.\n", self, s.url, self)
		s.describeAccess()
		return nil
	})
	stopKeeping()
	keepers.Wait()
	for _, c := range children {
		c.end(cfg.OnShutdown == "stop")
	}
	return unlessStopped(ctx, err)
}

// asTyped is how another terminal calls this program: by its name where that is
// on PATH, else as it was called itself. The PATH that npx makes is its own.
func asTyped(arg0 string, look func(string) (string, error)) string {
	const name = "signalbox"
	if os.Getenv("npm_command") == "exec" {
		return "npx " + name
	}
	if _, err := look(name); err == nil {
		return name
	}
	if strings.Contains(filepath.ToSlash(arg0), "/go-build") { // by go run, whose binary goes with it
		return "go run ./cmd/" + name
	}
	return arg0
}

// newChildren makes an agent for each kind asked for; for nil, the one of the
// configuration, else one for each kind that has options there and for each
// coding CLI on PATH, else the demo agent.
func newChildren(s *service, kinds []string) []*child {
	found := runner.Detect()
	if kinds == nil && s.cfg.Agent.Kind != "" {
		kinds = []string{s.cfg.Agent.Kind}
	}
	if kinds == nil {
		kinds = slices.Clone(s.cfg.Kinds)
		for _, f := range found {
			if !slices.Contains(kinds, f.Kind) {
				kinds = append(kinds, f.Kind)
			}
		}
		if kinds == nil {
			fmt.Fprintln(s.out.Out, "No coding CLI (claude, codex, opencode) on PATH: starting the built-in demo agent.")
			kinds = []string{"demo"}
		}
	}
	children := make([]*child, len(kinds))
	for i, kind := range kinds {
		children[i] = &child{s: s, cfg: s.cfg.For(kind), name: kind, kind: kind}
		if at := slices.IndexFunc(found, func(f runner.Found) bool { return f.Kind == kind }); at >= 0 {
			children[i].found = found[at]
		}
	}
	return children
}

// startable starts the children and returns those that run. One that cannot is
// told and left out, so that it keeps no other from its work; it is an error
// where none can.
func startable(ctx context.Context, children []*child) (running []*child, err error) {
	errs := startAll(ctx, children)
	for i, c := range children {
		if errs[i] == nil {
			running = append(running, c)
		} else if ctx.Err() == nil {
			fmt.Fprintf(c.s.out.Err, "Error: %v\n", errs[i])
		}
	}
	if len(running) == 0 && len(children) > 0 {
		return nil, errors.Join(errs...)
	}
	return running, ctx.Err()
}

// startAll starts the children side by side.
func startAll(ctx context.Context, children []*child) []error {
	errs := make([]error, len(children))
	var group sync.WaitGroup
	for i, c := range children {
		group.Go(func() { errs[i] = c.start(ctx) })
		group.Go(func() { c.learnLogin(ctx) })
	}
	group.Wait()
	return errs
}

// childLinger is how long a child agent stays after its director is gone:
// long enough for a restart to take it up again, with what it runs.
const childLinger = 10 * time.Minute

// What a child is told: the token that its callers must present, and where the
// director is and by which token it knows the child. The tokens are handed over
// (handOver), and stand in no list of processes.
const (
	agentTokenEnv = "SIGNALBOX_AGENT_TOKEN"
	directorEnv   = "SIGNALBOX_DIRECTOR"
	tokenEnv      = "SIGNALBOX_TOKEN"
)

// child is an agent that signalbox up keeps running.
type child struct {
	s     *service
	cfg   config.Config // for its kind
	found runner.Found  // CLI; the zero Found is another kind of agent
	login runner.Login  // of the CLI, once it is started
	name  string
	kind  string
	token string

	mu   sync.Mutex
	file agentFile // of the process that runs now
}

// start takes up a child that an earlier up left, or starts a new one, and
// makes it known to the director.
func (c *child) start(ctx context.Context) error {
	if f, ok := c.left(ctx); ok {
		c.s.log.Info("", "agent", "taken_up", "name", c.name, "url", f.URL, "pid", f.PID)
		return c.known(ctx, f)
	}
	f, err := c.spawn(ctx)
	if err != nil {
		return fmt.Errorf("agent %s: %w", c.name, err)
	}
	return c.known(ctx, f)
}

// left returns the child of an earlier up, if it lives and answers.
func (c *child) left(ctx context.Context) (f agentFile, ok bool) {
	if readJSON(agentFilePath(c.s.cfg.Data, c.name), &f) != nil || f.Token == "" {
		return f, false
	}
	s, err := c.ask(ctx, f)
	return f, err == nil && s.Name == c.name && s.AgentKind == c.kind
}

// spawn starts the child process and waits until it serves. It is a session
// of its own, so that a Ctrl-C for up does not reach it, and writes to a file,
// so that it lives on when up does not.
func (c *child) spawn(ctx context.Context) (f agentFile, err error) {
	self, err := os.Executable()
	if err != nil {
		return f, err
	}
	folder := agentFolder(c.s.cfg.Data, c.name)
	if err := os.MkdirAll(folder, 0o700); err != nil {
		return f, err
	}
	logPath := filepath.Join(folder, "agent.log")
	log, err := os.OpenFile(logPath, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return f, err
	}
	defer log.Close()
	c.token = rand.Text()
	known, err := c.s.identity.EnsureAgentToken(ctx, c.name)
	if err != nil {
		return f, fmt.Errorf("no token could be made for it: %w", err)
	}
	cmd := exec.CommandContext(context.WithoutCancel(ctx), self, c.args()...)  // it outlives up
	secrets := []string{agentTokenEnv + "=" + c.token, tokenEnv + "=" + known} // in place of up's own
	handed, err := handOver(cmd, os.Environ(), secrets)
	if err != nil {
		return f, err
	}
	defer handed.Close()
	cmd.Env = append(cmd.Env, lingerEnv+"="+childLinger.String(), directorEnv+"="+c.s.url)
	cmd.Stdout, cmd.Stderr = log, log
	proc.Detach(cmd)
	if err := proc.StartOwn(cmd); err != nil {
		return f, err
	}
	exited := make(chan error, 1)
	go func() { exited <- cmd.Wait() }()
	return c.awaitReady(ctx, cmd.Process.Pid, exited, logPath)
}

// args are those of the child's own command line: what up was told of its
// agents, whichever way it was told.
func (c *child) args() []string {
	cfg, a := c.cfg, c.cfg.Agent
	args := []string{"agent", "--kind=" + c.kind, "--name=" + c.name, "--addr=127.0.0.1:0", "--data=" + cfg.Data,
		"--slots=" + strconv.Itoa(a.Slots), "--isolated-slots=" + strconv.Itoa(a.IsolatedSlots),
		"--terminal=" + strconv.FormatBool(a.Terminal), "--timeout=" + a.Timeout.String(), "--log-format=" + cfg.Log.Format, "--log-level=" + cfg.Log.Level}
	for flag, value := range map[string]string{
		"--config": cfg.NamedFile(), "--workdir": a.WorkDir, "--home": a.Home, "--model": a.Model, "--permission-mode": a.PermissionMode,
	} {
		if value != "" {
			args = append(args, flag+"="+value)
		}
	}
	return args
}

// awaitReady waits for the file that a serving agent writes.
func (c *child) awaitReady(ctx context.Context, pid int, exited <-chan error, logPath string) (f agentFile, err error) {
	deadline := time.NewTimer(30 * time.Second)
	defer deadline.Stop()
	tick := time.Tick(10 * time.Millisecond)
	for {
		select {
		case err := <-exited:
			err = cmp.Or(err, errors.New("exit status 0"))
			return f, fmt.Errorf("it ended at once (%w): %s; its log is %s", err, strings.TrimPrefix(lastLine(logPath), "Error: "), logPath)
		case <-deadline.C:
			return f, fmt.Errorf("it did not become ready within 30 s; its log is %s", logPath)
		case <-ctx.Done():
			return f, ctx.Err()
		case <-tick:
		}
		if readJSON(agentFilePath(c.s.cfg.Data, c.name), &f) == nil && f.PID == pid {
			if _, err := c.ask(ctx, f); err == nil {
				return f, nil
			}
		}
	}
}

// lastLine is the last line of a log, for an error to show.
func lastLine(path string) string {
	data, err := os.ReadFile(path)
	if err != nil {
		return err.Error()
	}
	data = bytes.TrimSpace(data)
	return string(data[bytes.LastIndexByte(data, '\n')+1:])
}

// known makes the director call the child where it is now.
func (c *child) known(ctx context.Context, f agentFile) error {
	s, err := c.ask(ctx, f)
	if err != nil {
		return err
	}
	c.mu.Lock()
	c.file = f
	c.mu.Unlock()
	_, err = c.s.engine.PutAgent(ctx, signalbox.Agent{
		Name: c.name, Kind: c.kind, URL: f.URL, Slots: s.Slots, Fencing: s.Fencing, Proof: s.Proof,
		Source: signalbox.AgentChild, WorkDir: s.WorkDir, Version: s.Version,
	}, f.Token)
	return err
}

// keep starts the child again, with growing patience, when it has ended.
func (c *child) keep(ctx context.Context) {
	for delay := time.Second; ctx.Err() == nil; wait(ctx, delay) {
		if proc.Running(c.current().PID) {
			delay = time.Second
			continue
		}
		c.s.log.Warn("", "agent", "ended", "name", c.name, "restart", true)
		if err := c.start(ctx); err != nil && ctx.Err() == nil {
			c.s.log.Error("agent not restarted, trying again", "name", c.name, "error", err)
			delay = min(2*delay, 30*time.Second)
		}
	}
}

func (c *child) current() agentFile {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.file
}

// end stops the child, unless it is at a task that is to be left to it.
func (c *child) end(force bool) {
	ctx, cancel := context.WithTimeout(context.Background(), 15*time.Second)
	defer cancel()
	f := c.current()
	if f.URL == "" {
		return
	}
	err := askAgent(ctx, f, http.MethodPost, "/shutdown", api.AgentShutdown{Force: force}, nil)
	var refused *agentRefused
	switch {
	case errors.As(err, &refused) && refused.status == http.StatusConflict:
		fmt.Fprintf(c.s.out.Err, "Agent %s goes on with its task (pid %d); the next signalbox up takes it up again.\n", c.name, f.PID)
	case err != nil && proc.Running(f.PID):
		fmt.Fprintf(c.s.out.Err, "Agent %s did not stop (pid %d): %v\n", c.name, f.PID, err)
	}
}
