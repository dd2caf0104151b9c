package gateway

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/otel/trace"

	"github.com/signalbox-ai/signalbox/toolqueue"
)

const (
	// DefaultTimeout bounds a call of a tool that sets no timeout.
	DefaultTimeout = 5 * time.Minute
	// DefaultGrace is how long Close lets running calls continue.
	DefaultGrace = 5 * time.Second
	// MaxAnswer is the maximum size of one answer of an upstream, in bytes.
	MaxAnswer = 16 << 20
)

// Options configure a Gateway.
type Options struct {
	Queues    *toolqueue.Queues // required, with every queue that a tool names
	Providers []Provider
	Log       *slog.Logger
	// Grace is how long Close lets running calls continue. 0: DefaultGrace; below 0: no
	// grace.
	Grace time.Duration
	// Ended is called for every finished call. It must return quickly.
	Ended func(Ended)
	// Keys choose the key of a call in queues with limits for each key (toolqueue.Config.PerKey).
	// The map is by queue name.
	Keys map[string]KeyOf
	// Traces creates a span for each call; nil: no spans.
	Traces trace.TracerProvider
}

// Gateway calls tools. Make one with New.
type Gateway struct {
	queues    *toolqueue.Queues
	providers []Provider
	log       *slog.Logger
	grace     time.Duration
	ended     func(Ended)
	tracer    trace.Tracer // nil: no spans
	keys      map[string]KeyOf
	guesses   guesses

	table  atomic.Pointer[table]  // the tools; a lookup takes no lock
	onCall atomic.Pointer[func()] // nil: none

	rebuilding sync.Mutex // serializes rebuild

	mu        sync.Mutex
	inFlight  map[*inFlightCall]struct{} // waiting and running calls
	closing   bool
	idle      chan struct{} // closed when closing and no call is in flight
	listeners map[int]func()
	nextID    int
	stop      context.CancelFunc // ends background work of the providers

	closed     chan struct{}  // closed by Close
	background sync.WaitGroup // goroutines that hold the slots of runs that cannot be killed

	closeOnce sync.Once
	closeErr  error
}

// New makes a Gateway. Every queue that a tool is bound to must exist, and tool names must be
// unique: all mistakes are reported together.
func New(o Options) (*Gateway, error) {
	if o.Queues == nil {
		return nil, errors.New("gateway: the tool queues are missing")
	}
	g := &Gateway{
		queues: o.Queues, providers: slices.Clone(o.Providers), log: o.Log, grace: o.Grace, ended: o.Ended, keys: o.Keys,
		inFlight: map[*inFlightCall]struct{}{}, idle: make(chan struct{}), closed: make(chan struct{}), listeners: map[int]func(){}, stop: func() {},
	}
	if g.log == nil {
		g.log = slog.New(slog.DiscardHandler)
	}
	if g.grace == 0 {
		g.grace = DefaultGrace
	}
	if o.Traces != nil {
		g.tracer = o.Traces.Tracer(tracerName)
	}
	t := makeTable(g.providers, g.queues)
	g.table.Store(t)
	return g, errors.Join(slices.Concat(sameNames(g.providers), t.errors())...)
}

func sameNames(providers []Provider) []error {
	var errs []error
	seen := map[string]bool{}
	for _, p := range providers {
		if seen[p.Name()] {
			errs = append(errs, fmt.Errorf("two servers are named %q: give one of them another name", p.Name()))
		}
		seen[p.Name()] = true
	}
	return errs
}

// Start starts the providers. Slow work continues in the background until Close, independently
// of ctx.
func (g *Gateway) Start(ctx context.Context) error {
	g.mu.Lock()
	if g.closing {
		g.mu.Unlock()
		return errClosing
	}
	ctx, g.stop = context.WithCancel(context.WithoutCancel(ctx))
	g.mu.Unlock()
	var errs []error
	for _, p := range g.providers {
		if err := p.Start(ctx, g.rebuild); err != nil {
			errs = append(errs, fmt.Errorf("server %s: %w", p.Name(), err))
		}
	}
	g.rebuild()
	return errors.Join(errs...)
}

// Tools lists the callable tools by name. Their definitions must not be modified.
func (g *Gateway) Tools() []Tool { return slices.Clone(g.table.Load().tools) }

// Tool returns a callable tool.
func (g *Gateway) Tool(name string) (Tool, bool) {
	e := g.table.Load().entries[name]
	if e == nil {
		return Tool{}, false
	}
	return e.tool, true
}

// Servers lists the providers by name. Error reports skipped tools in every state.
func (g *Gateway) Servers() []Server {
	problems := g.table.Load().problems
	out := make([]Server, 0, len(g.providers))
	for _, p := range g.providers {
		s := p.Server()
		texts := problems[s.Name]
		if s.Error != "" {
			texts = append([]string{s.Error}, texts...)
		}
		s.Error = strings.Join(texts, "; ")
		out = append(out, s)
	}
	slices.SortStableFunc(out, func(a, b Server) int { return strings.Compare(a.Name, b.Name) })
	return out
}

// maxShown is the maximum number of waiters per queue in Queues.
const maxShown = 1000

// Queues returns the status of the tool queues, with the first 1,000 waiters of each. The
// session IDs in it are secrets of the callers: display only their SessionLabel.
func (g *Gateway) Queues() []toolqueue.Status { return g.queues.All(maxShown) }

// OnChange calls f whenever Tools changes, until stop is called. f must return quickly.
func (g *Gateway) OnChange(f func()) (stop func()) {
	g.mu.Lock()
	defer g.mu.Unlock()
	id := g.nextID
	g.nextID++
	g.listeners[id] = f
	return func() {
		g.mu.Lock()
		defer g.mu.Unlock()
		delete(g.listeners, id)
	}
}

// OnCall calls f after a call has begun to wait, got its slot or released it, and after a limit
// of a queue was changed, that is, whenever Queues changes. f must return quickly.
func (g *Gateway) OnCall(f func()) { g.onCall.Store(&f) }

func (g *Gateway) notifyCall(u *inFlightCall) {
	if u.entry.tool.Queue != "" {
		g.QueuesChanged()
	}
}

// QueuesChanged calls the function given to OnCall: the limits of a tool queue were
// changed.
func (g *Gateway) QueuesChanged() {
	if f := g.onCall.Load(); f != nil {
		(*f)()
	}
}

// SetQueue changes the limits of a tool queue and returns the previous ones. It calls
// toolqueue.Queues.Update and returns its errors.
func (g *Gateway) SetQueue(queue string, change func(*toolqueue.Config)) (before toolqueue.Config, err error) {
	before, _, err = g.queues.Update(queue, change)
	if err == nil {
		g.QueuesChanged()
	}
	return before, err
}

// OpenQueue opens a closed tool queue, for all its keys, so that it starts calls again, and
// returns how many keys were closed. A shared queue opens soon after. The error is
// toolqueue.ErrUnknown.
func (g *Gateway) OpenQueue(queue string) (closed int, err error) {
	s, _ := g.queues.Status(queue, toolqueue.MaxKeys)
	if !s.PerKey { // also if this process does not know yet that it is closed
		_, closed = s.Closed()
		err = g.queues.Open(queue, "")
	}
	for _, l := range s.Limits {
		if s.PerKey && l.Closed != (toolqueue.Closing{}) && err == nil {
			closed++
			err = g.queues.Open(queue, l.Key)
		}
	}
	if err == nil {
		g.QueuesChanged()
	}
	return closed, err
}

// EndSession releases what a session holds: its leases and its own servers.
func (g *Gateway) EndSession(session string) {
	if session == "" {
		return
	}
	g.queues.EndSession(session)
	for _, p := range g.providers {
		p.EndSession(session)
	}
}

type callerKey struct{}

// WithCaller puts the caller into a context.
func WithCaller(ctx context.Context, c Caller) context.Context {
	return context.WithValue(ctx, callerKey{}, c)
}

// CallerOf returns the caller from a context.
func CallerOf(ctx context.Context) Caller {
	c, _ := ctx.Value(callerKey{}).(Caller)
	return c
}
