// Package command provides command tools.
package command

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/internal/command"
	"github.com/signalbox-ai/signalbox/internal/gateway"
	"github.com/signalbox-ai/signalbox/internal/toolconf"
)

// Name is the provider's name.
const Name = "commands"

// Options configure a provider.
type Options struct{ Log *slog.Logger }

// New makes a provider of the tools, whose names must be unique.
//
// If a command did not complete, its call returns a Result with IsError and no error;
// Result.Run says how the run ended. An error is returned besides the Result only for a call
// that is not a task, if its context ended or the provider was closed.
func New(tools []*command.Tool, o Options) gateway.Provider {
	p := &provider{tools: make(map[string]*command.Tool, len(tools)), runs: map[*run]struct{}{}, since: time.Now(), log: o.Log}
	if p.log == nil {
		p.log = slog.New(slog.DiscardHandler)
	}
	for _, t := range tools {
		p.tools[t.Config().Name] = t
		p.offered = append(p.offered, toolOf(t))
	}
	slices.SortFunc(p.offered, func(a, b gateway.Tool) int { return strings.Compare(a.Name, b.Name) })
	return p
}

func toolOf(t *command.Tool) gateway.Tool {
	c := t.Config()
	queue := c.Queue
	if queue == "" && !c.Async {
		queue = "default"
	}
	definition, err := json.Marshal(struct {
		Name        string          `json:"name"`
		Title       string          `json:"title,omitempty"`
		Description string          `json:"description,omitempty"`
		InputSchema json.RawMessage `json:"inputSchema"`
	}{c.Name, c.Title, c.Description, t.Schema()})
	if err != nil { // the schema was read as JSON
		panic(err)
	}
	timeout := c.Timeout
	if timeout == 0 && !c.Async {
		timeout = gateway.DefaultTimeout
	}
	return gateway.Tool{
		Name: c.Name, Server: Name, Kind: gateway.KindCommand, Queue: queue, Definition: definition,
		Timeout: timeout, Async: c.Async, Secrets: c.Secrets,
		Restart: gateway.RestartPolicy{FailPending: c.Restart.Pending == toolconf.Fail, RequeueRunning: c.Restart.Running == toolconf.Requeue},
	}
}

// provider implements gateway.Provider and gateway.Checker.
type provider struct {
	tools   map[string]*command.Tool
	offered []gateway.Tool
	log     *slog.Logger

	mu   sync.Mutex
	runs map[*run]struct{} // running
	// runs in progress
	running    sync.WaitGroup
	since      time.Time
	closed     bool
	unkillable []func() []int // surviving processes of runs that could not be killed
}

var _ gateway.Checker = (*provider)(nil)

type run struct {
	cancel context.CancelFunc
	pid    int
}

// Name is "commands": one provider has all command tools.
func (p *provider) Name() string { return Name }

// Start does nothing: each call starts its own program.
func (p *provider) Start(context.Context, func()) error { return nil }

// Tools lists all tools, even if their programs do not exist: each run finds out.
func (p *provider) Tools() []gateway.Tool { return p.offered }

// Check validates a call before it takes a slot or is stored.
func (p *provider) Check(c gateway.Call) error {
	t, err := p.tool(c.Tool)
	if err != nil {
		return err
	}
	return t.Check(c.Arguments)
}

func (p *provider) tool(name string) (*command.Tool, error) {
	if t := p.tools[name]; t != nil {
		return t, nil
	}
	return nil, signalbox.Errorf(signalbox.CodeNotFound, "there is no tool %s", name)
}

// Call runs the command. Its metadata is the call's Meta.
func (p *provider) Call(ctx context.Context, c gateway.Call) (gateway.Result, error) {
	t, err := p.tool(c.Tool)
	if err != nil {
		return gateway.Result{}, err
	}
	running, r := p.register(ctx)
	if r == nil {
		return gateway.Result{}, errClosed
	}
	o := t.Run(running, command.Run{
		TaskID: c.Task, Mark: cmp.Or(c.Mark, "tool-"+rand.Text()), Input: c.Arguments, Metadata: c.Meta, Timeout: c.Limit,
		Secrets: c.Secrets,
		Log:     c.Log, Started: func(pid int) { p.started(r, pid) },
	})
	ended := running.Err() != nil
	p.unregister(r, o)
	result := resultOf(t, o)
	if c.Task != "" || !ended || o.Reason == signalbox.ReasonCompleted {
		return result, nil
	}
	if ctx.Err() != nil {
		return result, ctx.Err()
	}
	return result, errClosed
}

var errClosed = signalbox.Errorf(signalbox.CodeUnavailable, "The command tools are shutting down: call the tool again when they are back.")

func resultOf(t *command.Tool, o command.Outcome) gateway.Result {
	r := gateway.Result{Run: &gateway.RunEnd{
		Reason: o.Reason, Message: o.Message, ExitCode: o.ExitCode, Truncated: o.Truncated, Took: o.Took, Alive: o.Still,
	}}
	r.Content, r.Metadata, r.IsError = t.Answer(o)
	return r
}

// register adds a run, unless the provider is closed.
func (p *provider) register(ctx context.Context) (context.Context, *run) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return nil, nil
	}
	ctx, cancel := context.WithCancel(ctx)
	r := &run{cancel: cancel}
	p.runs[r] = struct{}{}
	p.running.Add(1)
	return ctx, r
}

func (p *provider) started(r *run, pid int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	r.pid = pid
}

func (p *provider) unregister(r *run, o command.Outcome) {
	r.cancel()
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.runs, r)
	if o.Still != nil {
		p.unkillable = append(p.unkillable, o.Still)
	}
	p.running.Done()
}

// EndSession does nothing: commands have no sessions.
func (p *provider) EndSession(string) {}

// Server is ready until Close. Its processes are those of the current runs.
func (p *provider) Server() gateway.Server {
	p.mu.Lock()
	defer p.mu.Unlock()
	s := gateway.Server{Name: Name, Kind: gateway.KindCommand, State: gateway.StateReady, Tools: len(p.offered), Since: p.since}
	if p.closed {
		s.State = gateway.StateStopped
	}
	if err := p.stillAlive(); err != nil {
		s.Error = err.Error()
	}
	for r := range maps.Keys(p.runs) {
		if r.pid > 0 {
			s.PIDs = append(s.PIDs, r.pid)
		}
	}
	slices.Sort(s.PIDs)
	return s
}

// Close cancels all runs and waits until their processes are dead. The error names processes
// that cannot be killed.
func (p *provider) Close() error {
	p.mu.Lock()
	if !p.closed {
		p.closed, p.since = true, time.Now()
	}
	for r := range p.runs {
		r.cancel()
	}
	p.mu.Unlock()
	p.running.Wait()
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.stillAlive()
}

// stillAlive lists processes that could not be killed, and forgets runs that have
// none left.
func (p *provider) stillAlive() error {
	var alive []int
	p.unkillable = slices.DeleteFunc(p.unkillable, func(still func() []int) bool {
		pids := still()
		alive = append(alive, pids...)
		return len(pids) == 0
	})
	if len(alive) == 0 {
		return nil
	}
	return fmt.Errorf("processes %v of commands are still alive after SIGKILL: they hang in the kernel", alive)
}
