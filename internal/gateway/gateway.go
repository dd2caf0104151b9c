package gateway

import (
	"context"
	"log/slog"
	"time"

	"github.com/signalbox-ai/signalbox/toolqueue"
)

// DefaultTimeout bounds a call of a tool that sets no timeout of its own.
const DefaultTimeout = 5 * time.Minute

// Options are what a Gateway is made of.
type Options struct {
	Queues    *toolqueue.Queues // required, with every queue that a tool names
	Providers []Provider
	Log       *slog.Logger
}

// Gateway calls tools. Make one with New.
type Gateway struct{}

// New makes a Gateway. Every queue that a tool is bound to must be there, and
// no two tools may have one name: all mistakes are reported together.
func New(Options) (*Gateway, error) { panic("being built") }

// Start starts the providers. What takes time goes on in the background.
func (g *Gateway) Start(ctx context.Context) error { panic("being built") }

// Close ends all calls and then all providers.
func (g *Gateway) Close() error { panic("being built") }

// Tools are those that can be called now, by name.
func (g *Gateway) Tools() []Tool { panic("being built") }

// Servers are the providers, by name.
func (g *Gateway) Servers() []Server { panic("being built") }

// Queues are the tool queues at this moment.
func (g *Gateway) Queues() []toolqueue.Status { panic("being built") }

// OnChange has f called whenever Tools changes, until stop is called.
func (g *Gateway) OnChange(f func()) (stop func()) { panic("being built") }

// Call takes a call through its tool's queue and runs it. A failure of the
// tool itself is a Result with IsError; an error is a *ProtocolError of the
// upstream or a *signalbox.Error: not_found, validation_error, tool_down,
// tool_timeout, tool_failed, tool_queue_full, tool_queue_timeout, too_large, or the context's.
func (g *Gateway) Call(ctx context.Context, c Call) (Result, error) { panic("being built") }

// EndSession hands on what a session holds: its leases, its servers of its own.
func (g *Gateway) EndSession(session string) { panic("being built") }

type callerKey struct{}

// WithCaller says who calls, for a way in that hands a context on.
func WithCaller(ctx context.Context, c Caller) context.Context {
	return context.WithValue(ctx, callerKey{}, c)
}

// CallerOf returns who calls, as WithCaller said.
func CallerOf(ctx context.Context) Caller {
	c, _ := ctx.Value(callerKey{}).(Caller)
	return c
}
