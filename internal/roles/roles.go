// Package roles is what the command line and the long-running commands agree on: the
// command line reads flags and configuration, a role runs with them.
package roles

import (
	"context"
	"io"
	"time"

	"github.com/signalbox-ai/signalbox/api"
	"github.com/signalbox-ai/signalbox/internal/config"
)

// Roles are the long-running commands. Each returns when its work is done, or nil soon
// after ctx has ended. An error with a method Hint() string is shown with that hint.
type Roles struct {
	Version   string
	Up        func(ctx context.Context, cfg config.Config, o Up) error
	Director  func(ctx context.Context, cfg config.Config, o Director) error
	Agent     func(ctx context.Context, cfg config.Config, o Agent) error
	Gateway   func(ctx context.Context, cfg config.Config, o Gateway) error
	Scheduler func(ctx context.Context, cfg config.Config, o Scheduler) error
	Demo      func(ctx context.Context, o Demo) error

	// Examine looks at a store, its folder and its address when no director may be
	// running. It changes nothing.
	Examine func(ctx context.Context, cfg config.Config) []api.Check
	// CLIs looks at the coding CLIs for which up would start an agent.
	CLIs func(ctx context.Context, cfg config.Config) []api.Check
}

// Streams are where a role writes: results, and everything else.
type Streams struct{ Out, Err io.Writer }

// Up is what signalbox up is told beyond the configuration.
type Up struct {
	Streams
	// Kinds are the agents to start as children: none for an empty list, and one for
	// each coding CLI on PATH for nil.
	Kinds []string
}

// Director is what signalbox director is told beyond the configuration.
type Director struct{ Streams }

// Agent is what signalbox agent is told beyond the configuration.
type Agent struct {
	Streams
	// Director is the URL of the director to register with, Token what to present to
	// it. Known says that somebody named the director or that it runs here: otherwise
	// the agent waits to be discovered.
	Director, Token string
	Known           bool
	// Owner says that Token is that of the director's owner, with which the agent gets
	// one of its own; Find finds the director again.
	Owner bool
	Find  func() (Agent, error)
}

// Gateway is what signalbox gateway is told beyond the configuration.
type Gateway struct {
	Streams
	In io.Reader
	// Stdio serves one MCP client on In and Out instead of HTTP.
	Stdio bool
	// Bridge, with Stdio, is the director whose tools are served; nil: those of the
	// configuration.
	Bridge *Bridge
}

// Bridge is a director that has tools.
type Bridge struct {
	URL, Token string
	// Execution says that the token is that of an agent, from which the director
	// believes which of its executions calls.
	Execution bool
}

// Scheduler is what signalbox scheduler is told beyond the configuration.
type Scheduler struct {
	Streams
	// Director finds the director to submit to: its URL, and what to present to it.
	// Known says that somebody named it or that it runs here; otherwise there is nobody
	// to submit to, for now.
	Director func() (url, token string, known bool, err error)
}

// Demo is what signalbox demo is told. It reads no configuration.
type Demo struct {
	Streams
	Addr string        // host:port; "": any free port of the loopback address
	Keep bool          // a clean end leaves the data
	Seed uint64        // of what is submitted when
	Pace time.Duration // from one submission to the next, about
	// Keys are those that a person presses; nil: there is nobody.
	Keys io.Reader
}
