// Package command makes a provider of command tools.
package command

import (
	"log/slog"

	"github.com/signalbox-ai/signalbox/internal/command"
	"github.com/signalbox-ai/signalbox/internal/gateway"
)

// Name is the provider's name among all servers.
const Name = "commands"

// Options say how a provider is made.
type Options struct{ Log *slog.Logger }

// A call whose command did not complete is a Result with IsError, and no error;
// Result.Run says how it ended, of every run.

// New makes a provider of the tools.
func New(tools []*command.Tool, o Options) gateway.Provider { panic("being built") }
