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

// Options are what a Provider may be told. Zero durations have defaults.
type Options struct {
	Log     *slog.Logger
	Version string // of Signalbox, for the servers
	// OwnNames has tools named as the server names them, without its own name in
	// front: it is a gateway itself, and the only one.
	OwnNames bool
	// Prove is the token that a server which is a director has to prove to know
	// before anything is sent to it.
	Prove string

	StartTimeout time.Duration // for a server to answer after its start; a minute and a half, as npx may have to download it
	ProbeEvery   time.Duration // between health probes; 30 s
	ProbeTimeout time.Duration // of one; 10 s
	Backoff      time.Duration // before the first restart; 1 s
	SessionIdle  time.Duration // of a session's own instance; 5 min
}

// Provider is one MCP server as a provider of the gateway.
type Provider struct {
	server toolconf.Server
	opts   Options
	log    *slog.Logger
	mask   *mask
	keeper *keeper
	said   *budget

	mu       sync.Mutex
	changed  func()
	tools    map[string]tool
	sessions *sessions // of a server that is not shared, once started
	left     error     // processes that could not be ended
	cancel   context.CancelFunc
	all      sync.WaitGroup
}

// New makes the provider of a server's tools. Nothing runs before Start.
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
	p.keeper = &keeper{p: p, state: gateway.StateStopped, since: time.Now(), news: make(chan struct{})}
	p.said = &budget{tell: func(left int) {
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
		p.sessions = &sessions{p: p, ctx: ctx, open: map[string]*own{}}
	}
	p.keeper.set(gateway.StateStarting, nil, nil)
	p.all.Go(func() { p.keeper.run(ctx) })
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
		r, err := p.callOnce(ctx, own, t.own, c)
		if errors.Is(err, errSessionLost) {
			if !again {
				continue // the server has not run it, and greets us anew
			}
			err = p.notThere(errSessionLost.Error())
		}
		return r, err
	}
}

func (p *Provider) callOnce(ctx context.Context, own *sessions, tool string, c gateway.Call) (gateway.Result, error) {
	if own != nil {
		return own.call(ctx, tool, c)
	}
	inst, err := p.keeper.ready(ctx)
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
	k := p.keeper
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
	return p.left
}

func (p *Provider) leftOver(err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.left = errors.Join(p.left, err)
}

// learn takes over the tools that a server lists now; news is to be called when
// they can be used.
func (p *Provider) learn(i *instance) (news func(), err error) {
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

// relearn is learn for a server that says its tools have changed. A list that
// is of no use leaves things as they are.
func (p *Provider) relearn(i *instance) {
	news, err := p.learn(i)
	if err == nil {
		news()
	} else if i.ctx.Err() == nil {
		p.log.Warn("the changed tools of a server could not be taken over", "server", p.server.Name, "reason", i.explain(err).Error())
	}
}

var _ gateway.Provider = (*Provider)(nil)
