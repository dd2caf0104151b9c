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
	// DefaultTimeout bounds a call of a tool that sets no timeout of its own.
	DefaultTimeout = 5 * time.Minute
	// DefaultGrace is how long Close lets calls under way go on.
	DefaultGrace = 5 * time.Second
	// MaxAnswer bounds one answer of an upstream, in bytes.
	MaxAnswer = 16 << 20
)

// Options are what a Gateway is made of.
type Options struct {
	Queues    *toolqueue.Queues // required, with every queue that a tool names
	Providers []Provider
	Log       *slog.Logger
	// Grace is how long Close lets calls under way go on: 0 is DefaultGrace,
	// less than 0 not at all.
	Grace time.Duration
	// Ended is told of every call that is over. It must return soon.
	Ended func(Ended)
	// Traces takes a span for each call; nil: none are made.
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

	table atomic.Pointer[table]  // what can be called; a lookup takes no lock
	moved atomic.Pointer[func()] // told of calls; nil: nobody is

	rebuilding sync.Mutex // one rebuild at a time, so that the newest stands

	mu        sync.Mutex
	under     map[*underway]struct{} // calls that wait or run
	closing   bool
	idle      chan struct{} // closed when closing and no call is under way
	listeners map[int]func()
	nextID    int
	stop      context.CancelFunc // ends what the providers do in the background

	closed     chan struct{}  // closed by Close
	background sync.WaitGroup // what holds slots for runs that cannot be killed

	closeOnce sync.Once
	closeErr  error
}

// New makes a Gateway. Every queue that a tool is bound to must be there, and
// no two tools may have one name: all mistakes are reported together.
func New(o Options) (*Gateway, error) {
	if o.Queues == nil {
		return nil, errors.New("gateway: the tool queues are missing")
	}
	g := &Gateway{
		queues: o.Queues, providers: slices.Clone(o.Providers), log: o.Log, grace: o.Grace, ended: o.Ended,
		under: map[*underway]struct{}{}, idle: make(chan struct{}), closed: make(chan struct{}), listeners: map[int]func(){}, stop: func() {},
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

// Start starts the providers. What takes time goes on in the background until
// Close, whatever becomes of ctx.
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

// Tools are those that can be called now, by name. The caller must not change
// what their definitions point to.
func (g *Gateway) Tools() []Tool { return slices.Clone(g.table.Load().tools) }

// Tool returns the tool of that name, if it can be called now.
func (g *Gateway) Tool(name string) (Tool, bool) {
	e := g.table.Load().entries[name]
	if e == nil {
		return Tool{}, false
	}
	return e.tool, true
}

// Servers are the providers, by name. One whose tools are left out says so in
// its Error, whatever its state.
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

// maxShown bounds how many waiters of a queue Queues shows.
const maxShown = 1000

// Queues are the tool queues at this moment, with the first 1,000 waiters of
// each. Their sessions are as callers gave them, which may be as good as a
// password: show Mark of them.
func (g *Gateway) Queues() []toolqueue.Status { return g.queues.All(maxShown) }

// OnChange has f called whenever Tools changes, until stop is called. It must
// return soon.
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

// OnCall has f called after a call has got its slot, begun to wait for one or given
// it back: Queues says otherwise then. It must return soon.
func (g *Gateway) OnCall(f func()) { g.moved.Store(&f) }

func (g *Gateway) callMoved(u *underway) {
	if f := g.moved.Load(); f != nil && u.entry.tool.Queue != "" {
		(*f)()
	}
}

// EndSession hands on what a session holds: its leases, its servers of its own.
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

// WithCaller says who calls, for a way in that hands a context on.
func WithCaller(ctx context.Context, c Caller) context.Context {
	return context.WithValue(ctx, callerKey{}, c)
}

// CallerOf returns who calls, as WithCaller said.
func CallerOf(ctx context.Context) Caller {
	c, _ := ctx.Value(callerKey{}).(Caller)
	return c
}
