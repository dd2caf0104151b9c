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

// Provider offers all REST tools of the configuration.
type Provider struct{ *Actions }

var (
	_ gateway.Provider = (*Provider)(nil)
	_ gateway.Checker  = (*Provider)(nil)
)

// New parses the tools. It reports all mistakes together.
func New(tools []toolconf.RestTool) (*Provider, error) {
	var reach EgressPolicy
	var all []*Action
	var errs []error
	named := map[string]bool{}
	for _, c := range tools {
		a, u, err := parseTool(c)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		if named[a.Tool.Name] {
			errs = append(errs, fmt.Errorf("%s: restTools.%s: there is another tool of that name", c.Where, c.Name))
		}
		named[a.Tool.Name] = true
		all = append(all, a)
		reach.Named = append(reach.Named, u.origin.Hostname())
	}
	if len(errs) > 0 {
		return nil, errors.Join(errs...)
	}
	p := &Provider{NewActions("rest", gateway.KindREST)}
	p.Ready(reach, all)
	return p, nil
}

// Start does nothing: each call makes its own request.
func (*Provider) Start(context.Context, func()) error { return nil }

// Actions are tools whose calls are HTTP requests, with their client and status: all
// of a gateway.Provider but Start.
type Actions struct {
	mu      sync.Mutex
	server  gateway.Server
	actions map[string]*Action
	tools   []gateway.Tool
	client  *Client
}

// NewActions returns Actions in the state starting, without tools.
func NewActions(name string, kind gateway.Kind) *Actions {
	return &Actions{server: gateway.Server{Name: name, Kind: kind, State: gateway.StateStarting, Since: time.Now()}}
}

// Ready sets the tools. It returns false if the provider is closed.
func (a *Actions) Ready(reach EgressPolicy, all []*Action) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.server.State == gateway.StateStopped {
		return false
	}
	a.actions = make(map[string]*Action, len(all))
	for _, action := range all {
		a.actions[action.Tool.Name] = action
		a.tools = append(a.tools, action.Tool)
	}
	a.client = NewClient(reach)
	a.server.Since, a.server.State, a.server.Error, a.server.Tools = time.Now(), gateway.StateReady, "", len(a.tools)
	return true
}

// Failed sets the error in the status.
func (a *Actions) Failed(err error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.server.State != gateway.StateStopped {
		a.server.Since, a.server.State, a.server.Error = time.Now(), gateway.StateFailed, err.Error()
	}
}

// Name is that of the provider.
func (a *Actions) Name() string { return a.Server().Name }

// Tools returns all tools, whether their upstreams answer or not.
func (a *Actions) Tools() []gateway.Tool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.tools
}

func (a *Actions) find(tool string) (*Client, *Action, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if action, ok := a.actions[tool]; ok {
		return a.client, action, nil
	}
	return nil, nil, signalbox.Errorf(signalbox.CodeNotFound, "there is no tool %s", Truncate(tool, 128))
}

// Check validates a call before it takes a slot.
func (a *Actions) Check(call gateway.Call) error {
	client, action, err := a.find(call.Tool)
	if err != nil {
		return err
	}
	return client.Check(action, call)
}

// Call makes the request of a call.
func (a *Actions) Call(ctx context.Context, call gateway.Call) (gateway.Result, error) {
	client, action, err := a.find(call.Tool)
	if err != nil {
		return gateway.Result{}, err
	}
	return client.Call(ctx, action, call)
}

// EndSession does nothing: requests have no sessions.
func (a *Actions) EndSession(string) {}

// Server returns the status. It stays ready until Close: upstreams are not
// probed.
func (a *Actions) Server() gateway.Server {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.server
}

// Close ends all calls and connections.
func (a *Actions) Close() error {
	a.mu.Lock()
	if a.server.State != gateway.StateStopped {
		a.server.State, a.server.Since = gateway.StateStopped, time.Now()
	}
	client := a.client
	a.mu.Unlock()
	if client != nil {
		client.Close()
	}
	return nil
}
