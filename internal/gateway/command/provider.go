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

// Ended is the error of a call whose command did not complete: Task code can
// tell by it why, and what was printed. Other callers are told by the Result,
// which is the same with IsError.
type Ended struct{ command.Outcome }

func (e *Ended) Error() string { return e.Message }

// New makes a provider of the tools.
func New(tools []*command.Tool, o Options) gateway.Provider { panic("being built") }
