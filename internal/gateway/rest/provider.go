package rest

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	signalbox "github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/internal/gateway"
	"github.com/signalbox-ai/signalbox/internal/toolconf"
)

// Provider has the REST tools of the configuration. Make one with New.
type Provider struct {
	client  *Client
	actions map[string]*Action
	tools   []gateway.Tool

	mu     sync.Mutex
	since  time.Time
	closed bool
}

var (
	_ gateway.Provider = (*Provider)(nil)
	_ gateway.Checker  = (*Provider)(nil)
)

// New reads the tools. All mistakes are reported together.
func New(tools []toolconf.RestTool) (*Provider, error) {
	p := &Provider{actions: make(map[string]*Action, len(tools)), since: time.Now()}
	var reach Reach
	var errs []error
	for _, c := range tools {
		a, u, err := read(c)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		if _, twice := p.actions[a.Tool.Name]; twice {
			errs = append(errs, fmt.Errorf("%s: restTools.%s: there is another tool of that name", c.Where, c.Name))
		}
		p.actions[a.Tool.Name] = a
		p.tools = append(p.tools, a.Tool)
		reach.Named = append(reach.Named, u.origin.Hostname())
	}
	if len(errs) > 0 {
		return nil, errors.Join(errs...)
	}
	p.client = NewClient(reach)
	return p, nil
}

// Name is "rest": all REST tools are one provider's.
func (p *Provider) Name() string { return "rest" }

// Start does nothing: each call makes its own request.
func (p *Provider) Start(context.Context, func()) error { return nil }

// Tools are all of them, whether anyone answers them or not.
func (p *Provider) Tools() []gateway.Tool { return p.tools }

// Check says whether a call fits its tool, before it takes a slot.
func (p *Provider) Check(call gateway.Call) error {
	a, err := p.action(call.Tool)
	if err != nil {
		return err
	}
	return p.client.Check(a, call)
}

// Call makes the request.
func (p *Provider) Call(ctx context.Context, call gateway.Call) (gateway.Result, error) {
	a, err := p.action(call.Tool)
	if err != nil {
		return gateway.Result{}, err
	}
	return p.client.Call(ctx, a, call)
}

func (p *Provider) action(tool string) (*Action, error) {
	if a, ok := p.actions[tool]; ok {
		return a, nil
	}
	return nil, signalbox.Errorf(signalbox.CodeNotFound, "there is no tool %s", tool)
}

// EndSession does nothing: requests know no session.
func (p *Provider) EndSession(string) {}

// Server describes it. It is ready until its end: who answers is known call by
// call.
func (p *Provider) Server() gateway.Server {
	p.mu.Lock()
	defer p.mu.Unlock()
	state := gateway.StateReady
	if p.closed {
		state = gateway.StateStopped
	}
	return gateway.Server{Name: p.Name(), Kind: gateway.KindREST, State: state, Tools: len(p.tools), Since: p.since}
}

// Close ends all calls and connections.
func (p *Provider) Close() error {
	p.mu.Lock()
	if !p.closed {
		p.closed, p.since = true, time.Now()
	}
	p.mu.Unlock()
	p.client.Close()
	return nil
}
