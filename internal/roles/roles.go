// Package roles is the interface between the command line and the long-running
// commands: the command line reads flags and configuration, a role runs with them.
package roles

import (
	"context"
	"io"
	"time"

	"github.com/signalbox-ai/signalbox/api"
	"github.com/signalbox-ai/signalbox/internal/config"
)

// Roles are the long-running commands. Each returns when its work is done, or returns
// nil soon after ctx has ended. If an error has a method Hint() string, the hint is
// shown with it.
type Roles struct {
	Version   string
	Up        func(ctx context.Context, cfg config.Config, o Up) error
	Director  func(ctx context.Context, cfg config.Config, o Director) error
	Agent     func(ctx context.Context, cfg config.Config, o Agent) error
	Gateway   func(ctx context.Context, cfg config.Config, o Gateway) error
	Scheduler func(ctx context.Context, cfg config.Config, o Scheduler) error
	Demo      func(ctx context.Context, o Demo) error

	// Examine checks a store, its folder and its address while no director may be
	// running. It changes nothing.
	Examine func(ctx context.Context, cfg config.Config) []api.Check
	// CLIs checks the coding CLIs for which up would start an agent.
	CLIs func(ctx context.Context, cfg config.Config) []api.Check
}

// Streams are where a role writes: Out gets results, Err everything else.
type Streams struct{ Out, Err io.Writer }

// Up are the inputs of signalbox up besides the configuration.
type Up struct {
	Streams
	// Kinds are the agents to start as child processes: none for an empty list, and
	// one for each coding CLI on PATH for nil.
	Kinds []string
}

// Director are the inputs of signalbox director besides the configuration.
type Director struct{ Streams }

// Agent are the inputs of signalbox agent besides the configuration.
type Agent struct {
	Streams
	// Director is the URL of the director to register with, Token the token for it.
	// Known says that the director was named or runs on this machine: otherwise the
	// agent waits to be discovered.
	Director, Token string
	Known           bool
	// Owner says that Token belongs to the director's owner, so that the agent can get
	// a token of its own; Find finds the director again.
	Owner bool
	Find  func() (Agent, error)
}

// Gateway are the inputs of signalbox gateway besides the configuration.
type Gateway struct {
	Streams
	In io.Reader
	// Stdio serves one MCP client on In and Out instead of HTTP.
	Stdio bool
	// Bridge, with Stdio, is the director whose tools are served; nil: the tools of
	// the configuration.
	Bridge *Bridge
}

// Bridge is a director with tools.
type Bridge struct {
	URL, Token string
	// Execution says that the token belongs to an agent. From such a client the
	// director accepts the name of the execution that calls.
	Execution bool
}

// Scheduler are the inputs of signalbox scheduler besides the configuration.
type Scheduler struct {
	Streams
	// Director finds the director to submit to: its URL, and its token. Known says that
	// it was named or runs on this machine; otherwise there is currently no director to
	// submit to.
	Director func() (url, token string, known bool, err error)
}

// Demo are the inputs of signalbox demo. It reads no configuration.
type Demo struct {
	Streams
	Addr string        // host:port; "": any free port of the loopback address
	Keep bool          // a clean exit leaves the data
	Seed uint64        // determines what is submitted when
	Pace time.Duration // approximate interval of submissions
	// Keys are the key presses of the user; nil: there is no user.
	Keys io.Reader
}
