package openapi

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	signalbox "github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/internal/gateway"
	"github.com/signalbox-ai/signalbox/internal/gateway/rest"
	"github.com/signalbox-ai/signalbox/internal/toolconf"
)

// Options are how a Provider works. The zero Options are good.
type Options struct {
	Log   *slog.Logger
	Retry time.Duration // before a description at a URL is tried again; doubled up to maxRetry. 0: 2 s
}

const (
	firstRetry = 2 * time.Second
	maxRetry   = 5 * time.Minute
	loadTime   = time.Minute // to fetch a description
)

// Provider has the tools of one description. Make one with New.
//
//	file: Start ─▶ ready, or an error        URL: Start ─▶ starting ─▶ ready
//	                                                          │  ▲
//	                                                          ▼  │ after a while
//	                                                         failed
type Provider struct {
	conf toolconf.OpenAPI
	o    Options

	mu      sync.Mutex
	server  gateway.Server
	actions map[string]*rest.Action
	tools   []gateway.Tool
	client  *rest.Client
	stop    context.CancelFunc
	done    chan struct{} // closed when nothing tries any more; nil: nothing does
}

var (
	_ gateway.Provider = (*Provider)(nil)
	_ gateway.Checker  = (*Provider)(nil)
)

// New makes a Provider, which reads nothing before Start.
func New(c toolconf.OpenAPI, o Options) *Provider {
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.Retry <= 0 {
		o.Retry = firstRetry
	}
	return &Provider{conf: c, o: o, stop: func() {}, server: gateway.Server{Name: c.Name, Kind: gateway.KindOpenAPI, State: gateway.StateStarting, Since: time.Now()}}
}

// Name is that of the description.
func (p *Provider) Name() string { return p.conf.Name }

// Start reads the description. One in a file is read at once, and an error if
// it is invalid; one at a URL is read in the background, and tried again for
// as long as it cannot be had.
func (p *Provider) Start(ctx context.Context, changed func()) error {
	s, err := newSource(ctx, p.conf)
	if err != nil {
		return wrong(p.conf, err)
	}
	defer s.close()
	if s.where == nil {
		return p.load(ctx)
	}
	if _, err := newHosts(p.conf, s.where); err != nil {
		return wrong(p.conf, err)
	}
	ctx, stop := context.WithCancel(ctx)
	done := make(chan struct{})
	p.mu.Lock()
	p.stop, p.done = stop, done
	p.mu.Unlock()
	go func() {
		defer close(done)
		p.keepTrying(ctx, changed)
	}()
	return nil
}

func (p *Provider) keepTrying(ctx context.Context, changed func()) {
	for wait := p.o.Retry; ; wait = min(2*wait, maxRetry) {
		err := p.load(ctx)
		if err == nil {
			changed()
			return
		}
		if ctx.Err() != nil {
			return
		}
		p.o.Log.Warn("the description of tools cannot be used yet", "server", p.conf.Name, "error", err, "again_in", wait)
		select {
		case <-ctx.Done():
			return
		case <-time.After(wait):
		}
	}
}

// load reads the description and takes its tools over.
func (p *Provider) load(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, loadTime)
	defer cancel()
	d, err := Load(ctx, p.conf)
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.server.State == gateway.StateStopped {
		return errors.New("it is stopped")
	}
	p.server.Since = time.Now()
	if err != nil {
		p.server.State, p.server.Error = gateway.StateFailed, err.Error()
		return err
	}
	for i, w := range d.Warnings {
		if i == mostMistakes {
			p.o.Log.Warn("the description of tools is used in part", "server", p.conf.Name, "more_reasons", len(d.Warnings)-i)
			break
		}
		p.o.Log.Warn("the description of tools is used in part", "server", p.conf.Name, "reason", w)
	}
	p.actions = make(map[string]*rest.Action, len(d.Actions))
	for _, a := range d.Actions {
		a.Secrets = p.conf.Secrets
		p.actions[a.Tool.Name] = a
		p.tools = append(p.tools, a.Tool)
	}
	p.client = rest.NewClient(d.Reach)
	p.server.State, p.server.Error, p.server.Tools = gateway.StateReady, "", len(p.tools)
	return nil
}

// Tools are those of the description, once it has been read.
func (p *Provider) Tools() []gateway.Tool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.tools
}

func (p *Provider) find(tool string) (*rest.Client, *rest.Action, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if a, ok := p.actions[tool]; ok {
		return p.client, a, nil
	}
	return nil, nil, signalbox.Errorf(signalbox.CodeNotFound, "there is no tool %s", rest.Cut(tool, 128))
}

// Check says whether a call fits its tool, before it takes a slot.
func (p *Provider) Check(call gateway.Call) error {
	client, action, err := p.find(call.Tool)
	if err != nil {
		return err
	}
	return client.Check(action, call)
}

// Call makes the request.
func (p *Provider) Call(ctx context.Context, call gateway.Call) (gateway.Result, error) {
	client, action, err := p.find(call.Tool)
	if err != nil {
		return gateway.Result{}, err
	}
	return client.Call(ctx, action, call)
}

// EndSession does nothing: requests know no session.
func (p *Provider) EndSession(string) {}

// Server describes it.
func (p *Provider) Server() gateway.Server {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.server
}

// Close ends all calls and connections, and stops trying.
func (p *Provider) Close() error {
	p.mu.Lock()
	stop, done, client := p.stop, p.done, p.client
	p.server.State, p.server.Since = gateway.StateStopped, time.Now()
	p.mu.Unlock()
	stop()
	if done != nil {
		<-done
	}
	if client != nil {
		client.Close()
	}
	return nil
}
