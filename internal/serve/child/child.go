// Package child keeps agents running as child processes of a director. A child outlives
// its director, and the next director takes it over with its running tasks.
package child

import (
	"bytes"
	"cmp"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/api"
	"github.com/signalbox-ai/signalbox/internal/config"
	"github.com/signalbox-ai/signalbox/internal/handshake"
	"github.com/signalbox-ai/signalbox/internal/proc"
	"github.com/signalbox-ai/signalbox/internal/serve"
	"github.com/signalbox-ai/signalbox/internal/serve/agent"
	"github.com/signalbox-ai/signalbox/internal/serve/director"
)

// linger is how long a child stays after its director is gone: long enough for a
// restarted director to take it over.
const linger = 10 * time.Minute

// Variables in the environment of a child: the token that its callers must present, the
// director's URL, and the child's token for the director.
const (
	agentTokenEnv = "SIGNALBOX_AGENT_TOKEN"
	directorEnv   = "SIGNALBOX_DIRECTOR"
)

// Child is an agent that is kept running.
type Child struct {
	Name, Kind string
	Config     config.Config // configuration for its kind

	director *director.Director

	mu   sync.Mutex
	file agent.File // file of the current process
}

// New returns a child of a director. It is not started.
func New(d *director.Director, name, kind string) *Child {
	return &Child{Name: name, Kind: kind, Config: d.Config.For(kind), director: d}
}

// StartAll starts children concurrently. The errors are in the order of the children.
func StartAll(ctx context.Context, children []*Child) []error {
	errs := make([]error, len(children))
	var group sync.WaitGroup
	for i, c := range children {
		group.Go(func() { errs[i] = c.start(ctx) })
	}
	group.Wait()
	return errs
}

// start takes over the child of an earlier director, or starts a new one, and registers
// it with the director.
func (c *Child) start(ctx context.Context) error {
	if f, ok := c.Left(ctx); ok {
		c.director.Log.Info("", "agent", "taken_up", "name", c.Name, "url", f.URL, "pid", f.PID)
		return c.register(ctx, f)
	}
	f, err := c.spawn(ctx)
	if err != nil {
		return fmt.Errorf("agent %s: %w", c.Name, err)
	}
	return c.register(ctx, f)
}

// Left returns the child that an earlier director left, if it runs and answers.
func (c *Child) Left(ctx context.Context) (f agent.File, ok bool) {
	f, err := agent.ReadFile(c.Config.Data, c.Name)
	if err != nil || f.Token == "" {
		return f, false
	}
	s, err := status(ctx, f)
	return f, err == nil && s.Name == c.Name && s.AgentKind == c.Kind
}

// spawn starts the child process and waits until it serves. The process has a session
// of its own, which a Ctrl-C does not reach, and logs to a file: it outlives this one.
func (c *Child) spawn(ctx context.Context) (f agent.File, err error) {
	self, err := os.Executable()
	if err != nil {
		return f, err
	}
	folder := agent.Folder(c.Config.Data, c.Name)
	if err := os.MkdirAll(folder, 0o700); err != nil {
		return f, err
	}
	logPath := filepath.Join(folder, "agent.log")
	log, err := os.OpenFile(logPath, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return f, err
	}
	defer log.Close()
	known, err := c.director.Identity.EnsureAgentToken(ctx, c.Name)
	if err != nil {
		return f, fmt.Errorf("create its token: %w", err)
	}
	cmd := exec.CommandContext(context.WithoutCancel(ctx), self, c.args()...)
	secrets := []string{agentTokenEnv + "=" + rand.Text(), serve.TokenEnv + "=" + known} // instead of this process's own
	passed, err := passEnvironment(cmd, os.Environ(), secrets)
	if err != nil {
		return f, err
	}
	defer passed.Close()
	cmd.Env = append(cmd.Env, agent.LingerEnv+"="+linger.String(), directorEnv+"="+c.director.URL)
	cmd.Stdout, cmd.Stderr = log, log
	proc.Detach(cmd)
	if err := proc.StartOwn(cmd); err != nil {
		return f, err
	}
	exited := make(chan error, 1)
	go func() { exited <- cmd.Wait() }()
	return c.awaitReady(ctx, cmd.Process.Pid, exited, logPath)
}

// args returns the child's command line: the director's settings for its agents, from
// whatever source.
func (c *Child) args() []string {
	cfg, a := c.Config, c.Config.Agent
	args := []string{"agent", "--kind=" + c.Kind, "--name=" + c.Name, "--addr=127.0.0.1:0", "--data=" + cfg.Data,
		"--slots=" + strconv.Itoa(a.Slots), "--isolated-slots=" + strconv.Itoa(a.IsolatedSlots),
		"--terminal=" + strconv.FormatBool(a.Terminal), "--timeout=" + a.Timeout.String(), "--log-format=" + cfg.Log.Format, "--log-level=" + cfg.Log.Level}
	for flag, value := range map[string]string{
		"--config": cfg.NamedFile(), "--workdir": a.WorkDir, "--workspace": a.Workspace.Kind, "--home": a.Home, "--model": a.Model, "--permission-mode": a.PermissionMode, "--account": a.Account,
	} {
		if value != "" {
			args = append(args, flag+"="+value)
		}
	}
	return args
}

// awaitReady waits for the file that a serving agent writes.
func (c *Child) awaitReady(ctx context.Context, pid int, exited <-chan error, logPath string) (f agent.File, err error) {
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
		if f, err = agent.ReadFile(c.Config.Data, c.Name); err == nil && f.PID == pid {
			if _, err := status(ctx, f); err == nil {
				return f, nil
			}
		}
	}
}

// lastLine is the last line of a log.
func lastLine(path string) string {
	data, err := os.ReadFile(path)
	if err != nil {
		return err.Error()
	}
	data = bytes.TrimSpace(data)
	return string(data[bytes.LastIndexByte(data, '\n')+1:])
}

// register registers the child, where it is now, with the director.
func (c *Child) register(ctx context.Context, f agent.File) error {
	s, err := status(ctx, f)
	if err != nil {
		return err
	}
	c.mu.Lock()
	c.file = f
	c.mu.Unlock()
	_, err = c.director.Engine.PutAgent(ctx, signalbox.Agent{
		Name: c.Name, Kind: c.Kind, URL: f.URL, Slots: s.Slots, Fencing: s.Fencing, Proof: s.Proof,
		Source: signalbox.AgentChild, WorkDir: s.WorkDir, Version: s.Version,
	}, f.Token)
	return err
}

// Keep restarts the child, with backoff, when it has ended. It returns when ctx ends.
func (c *Child) Keep(ctx context.Context) {
	for delay := time.Second; ctx.Err() == nil; serve.Sleep(ctx, delay) {
		if proc.Running(c.PID()) {
			delay = time.Second
			continue
		}
		c.director.Log.Warn("", "agent", "ended", "name", c.Name, "restart", true)
		if err := c.start(ctx); err != nil && ctx.Err() == nil {
			c.director.Log.Error("agent not restarted, trying again", "name", c.Name, "error", err)
			delay = min(2*delay, 30*time.Second)
		}
	}
}

// PID returns the ID of the current process, 0 if none was started.
func (c *Child) PID() int { return c.current().PID }

func (c *Child) current() agent.File {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.file
}

// End stops the child. Without force, a child that runs a task goes on.
func (c *Child) End(force bool) {
	ctx, cancel := context.WithTimeout(context.Background(), 15*time.Second)
	defer cancel()
	f := c.current()
	if f.URL == "" {
		return
	}
	err := request(ctx, f, http.MethodPost, "/shutdown", api.AgentShutdown{Force: force}, nil)
	var refused *refusedError
	switch {
	case errors.As(err, &refused) && refused.status == http.StatusConflict:
		fmt.Fprintf(c.director.Out.Err, "Agent %s goes on with its task (pid %d); the next signalbox up takes it over.\n", c.Name, f.PID)
	case err != nil && proc.Running(f.PID):
		fmt.Fprintf(c.director.Out.Err, "Agent %s did not stop (pid %d): %v\n", c.Name, f.PID, err)
	}
}

func status(ctx context.Context, f agent.File) (s api.AgentStatus, err error) {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	return s, request(ctx, f, http.MethodGet, "/status", nil, &s)
}

// refusedError is an unsuccessful answer of an agent.
type refusedError struct{ status int }

func (e *refusedError) Error() string { return fmt.Sprintf("it answered %d", e.status) }

// request sends one request to an agent.
func request(ctx context.Context, f agent.File, method, path string, body, answer any) error {
	var sent bytes.Buffer
	if body != nil {
		if err := json.NewEncoder(&sent).Encode(body); err != nil {
			return err
		}
	}
	req, err := http.NewRequestWithContext(ctx, method, f.URL+path, &sent)
	if err != nil {
		return err
	}
	req.Header.Set("Authorization", "Bearer "+f.Token)
	req.Header.Set("Content-Type", "application/json")
	client := &http.Client{Transport: handshake.ToAgent(&http.Transport{DisableKeepAlives: true}, f.URL, f.Token, f.Proof)}
	resp, err := client.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if resp.StatusCode/100 != 2 {
		return &refusedError{resp.StatusCode}
	}
	if answer == nil {
		return nil
	}
	return json.NewDecoder(resp.Body).Decode(answer)
}
