package mcp

import (
	"context"
	"errors"
	"log/slog"
	"maps"
	"reflect"
	"slices"
	"sync"
	"time"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/internal/gateway"
	"github.com/signalbox-ai/signalbox/internal/toolconf"
)

// Options configure a Provider. Zero durations have defaults.
type Options struct {
	Log     *slog.Logger
	Version string // of Signalbox, sent to servers
	// OwnNames keeps the server's tool names without the server's name as a prefix. It is
	// for a server that is a gateway itself and the only server.
	OwnNames bool
	// Prove is a token. A server that is a director must prove that it knows the token before
	// anything is sent to it.
	Prove string

	StartTimeout time.Duration // bounds the start of a server; 1.5 min, since npx may have to download it
	ProbeEvery   time.Duration // interval of health probes; 30 s
	ProbeTimeout time.Duration // timeout of a probe; 10 s
	Backoff      time.Duration // delay before the first restart; 1 s
	SessionIdle  time.Duration // idle time after which a session's own instance ends; 5 min
}

// Provider offers the tools of one MCP server.
type Provider struct {
	server       toolconf.Server
	opts         Options
	log          *slog.Logger
	mask         *mask
	supervisor   *supervisor
	stderrBudget *logBudget

	mu         sync.Mutex
	changed    func()
	tools      map[string]tool
	sessions   *sessions // for a server that is not shared, once started
	unkillable error     // processes that could not be killed
	cancel     context.CancelFunc
	all        sync.WaitGroup
}

// New makes the provider of a server. It starts nothing; Start does.
func New(server toolconf.Server, opts Options) *Provider {
	if opts.Log == nil {
		opts.Log = slog.New(slog.DiscardHandler)
	}
	or := func(d *time.Duration, standard time.Duration) {
		if *d <= 0 {
			*d = standard
		}
	}
	or(&opts.StartTimeout, 90*time.Second)
	or(&opts.ProbeEvery, 30*time.Second)
	or(&opts.ProbeTimeout, probeTimeout)
	or(&opts.Backoff, time.Second)
	or(&opts.SessionIdle, 5*time.Minute)
	p := &Provider{server: server, opts: opts, log: opts.Log, mask: newMask(server)}
	p.supervisor = &supervisor{p: p, state: gateway.StateStopped, since: time.Now(), changed: make(chan struct{})}
	p.stderrBudget = &logBudget{reportTimer: func(left int) {
		p.log.Debug("lines that a tool server wrote to stderr were left out", "server", server.Name, "lines", left)
	}}
	return p
}

// Name implements gateway.Provider.
func (p *Provider) Name() string { return p.server.Name }

// Start implements gateway.Provider.
func (p *Provider) Start(ctx context.Context, changed func()) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.cancel != nil {
		return errors.New("the server " + p.server.Name + " was started before")
	}
	ctx, p.cancel = context.WithCancel(ctx)
	p.changed = changed
	if !p.server.Shared {
		p.sessions = &sessions{p: p, ctx: ctx, open: map[string]*sessionInstance{}}
	}
	p.supervisor.set(gateway.StateStarting, nil, nil)
	p.all.Go(func() { p.supervisor.run(ctx) })
	return nil
}

// Tools implements gateway.Provider.
func (p *Provider) Tools() []gateway.Tool {
	p.mu.Lock()
	defer p.mu.Unlock()
	out := make([]gateway.Tool, 0, len(p.tools))
	for _, name := range slices.Sorted(maps.Keys(p.tools)) {
		out = append(out, p.tools[name].Tool)
	}
	return out
}

// Call implements gateway.Provider.
func (p *Provider) Call(ctx context.Context, c gateway.Call) (gateway.Result, error) {
	p.mu.Lock()
	t, known := p.tools[c.Tool]
	own := p.sessions
	p.mu.Unlock()
	if !known {
		return gateway.Result{}, signalbox.Errorf(signalbox.CodeNotFound, "The server %q has no tool %q.", p.server.Name, c.Tool)
	}
	for again := false; ; again = true {
		r, err := p.callOnce(ctx, own, t.name, c)
		if errors.Is(err, errSessionLost) {
			if !again {
				continue // the call did not run: retry in a new session
			}
			err = p.downError(errSessionLost.Error())
		}
		return r, err
	}
}

func (p *Provider) callOnce(ctx context.Context, own *sessions, tool string, c gateway.Call) (gateway.Result, error) {
	if own != nil {
		return own.call(ctx, tool, c)
	}
	inst, err := p.supervisor.ready(ctx)
	if err != nil {
		return gateway.Result{}, err
	}
	return inst.call(ctx, tool, c)
}

// EndSession implements gateway.Provider.
func (p *Provider) EndSession(session string) {
	p.mu.Lock()
	own := p.sessions
	p.mu.Unlock()
	if own != nil && session != "" {
		own.end(session)
	}
}

// Server implements gateway.Provider.
func (p *Provider) Server() gateway.Server {
	k := p.supervisor
	k.mu.Lock()
	s := gateway.Server{Name: p.server.Name, Kind: gateway.KindMCP, State: k.state, Error: k.err, Restarts: k.restarts, Since: k.since}
	inst := k.inst
	k.mu.Unlock()
	p.mu.Lock()
	s.Tools = len(p.tools)
	own := p.sessions
	p.mu.Unlock()
	if inst != nil && inst.child != nil {
		s.PIDs = inst.child.proc.Alive()
	}
	if own != nil {
		s.PIDs = own.pids()
	}
	slices.Sort(s.PIDs)
	return s
}

// Close implements gateway.Provider.
func (p *Provider) Close() error {
	p.mu.Lock()
	cancel, own := p.cancel, p.sessions
	p.mu.Unlock()
	if cancel == nil {
		return nil
	}
	cancel()
	p.all.Wait()
	if own != nil {
		own.close()
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.unkillable
}

func (p *Provider) unkillablePIDs(err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.unkillable = errors.Join(p.unkillable, err)
}

// setTools replaces the listed tools. news must be called once they can be
// used.
func (p *Provider) setTools(i *instance) (news func(), err error) {
	listed, err := i.list()
	if err != nil {
		return nil, err
	}
	tools, err := p.offer(listed)
	if err != nil {
		return nil, err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	same := maps.EqualFunc(p.tools, tools, func(a, b tool) bool { return reflect.DeepEqual(a, b) })
	p.tools = tools
	if same || p.changed == nil {
		return func() {}, nil
	}
	return p.changed, nil
}

// refreshTools lists the tools again after a change. An unusable list changes
// nothing.
func (p *Provider) refreshTools(i *instance) {
	news, err := p.setTools(i)
	if err == nil {
		news()
	} else if i.ctx.Err() == nil {
		p.log.Warn("the changed tools of a server could not be applied", "server", p.server.Name, "reason", i.explain(err).Error())
	}
}

var _ gateway.Provider = (*Provider)(nil)
