package execution

import (
	"cmp"
	"container/list"
	"context"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/api"
	"github.com/signalbox-ai/signalbox/internal/engine"
	"github.com/signalbox-ai/signalbox/internal/store"
)

// Options are what every transport to agents is told. Zero fields take the defaults.
type Options struct {
	// Holds reports whether an agent is this director's, where several are over the
	// store. nil: all are.
	Holds        func(agent string) bool
	SessionGrace time.Duration // absence of an agent before its session tasks are dealt with
	Tick         time.Duration // the backstop behind the events
	// StallLimit stops a run that made no progress for so long; 0: no limit, or
	// signalbox.StallByProgress.
	StallLimit time.Duration
	// RunGrace is how long a run may overstay its timeout_seconds, which its
	// agent keeps, before it is stopped from here.
	RunGrace time.Duration
	Traces   Traces // nil: agents are told of no trace
	// Backstop is shared by the transports of a director; nil: this one has its own.
	Backstop *Backstop
	// Turn is called by each goroutine here when it has waited for something,
	// and when it begins, before it looks at anything: a simulation lets one at a
	// time go on, in an order of its own. what, of and n name it. nil: all go
	// on at once.
	Turn func(what, of string, n int64)
	Log  *slog.Logger
	// Monotonic is the clock by which silence is measured: time.Now, whose
	// readings carry the monotonic clock.
	Monotonic func() time.Time
}

// Defaults of all transports.
const (
	DefaultSessionGrace = 60 * time.Second
	DefaultRunGrace     = 30 * time.Second
	DefaultTick         = time.Second
)

func (o Options) withDefaults() Options {
	o.SessionGrace = cmp.Or(o.SessionGrace, DefaultSessionGrace)
	o.RunGrace = cmp.Or(o.RunGrace, DefaultRunGrace)
	o.Tick = cmp.Or(o.Tick, DefaultTick)
	o.Log = cmp.Or(o.Log, slog.New(slog.DiscardHandler))
	if o.Backstop == nil {
		o.Backstop = &Backstop{}
	}
	if o.Monotonic == nil {
		o.Monotonic = time.Now
	}
	return o
}

// Agent is a transport's own record of an agent, with a Lane in it. Book.Mu is held
// when its methods are called.
type Agent[R Follower] interface {
	comparable
	Base() *Lane[R]
	// Room is how many of its slots, or of those for isolated executions, are free,
	// as far as this director gives it tasks.
	Room(isolated bool) int
	// Takes is how many tasks it takes when it is woken once; 0 where nobody would
	// hear of it.
	ClaimsPerWake() int
	// Withheld says why its slots are offered nothing, by its own word; "" where
	// they are.
	Withheld() string
	// Show completes how it is shown.
	Describe(*engine.LiveAgent)
}

// Book is what one transport knows of its agents and of what they run. A task that
// waits finds a free slot without a tick:
//
//   - A task that becomes ready wakes one agent that serves its queue and has room
//     for which no other task was announced, the one that has had it for the
//     longest. If there is none, every agent that serves the queue is full or about
//     to look.
//   - An agent that is woken, for whatever reason, claims.
//   - What it was woken for and did not take is passed on.
type Registry[A Agent[R], R Follower] struct {
	Engine *engine.Engine
	Log    *slog.Logger
	ID     string // of the store; agents compare fences within it
	Ctx    context.Context
	cancel context.CancelFunc
	Group  sync.WaitGroup // every goroutine

	Maintenance Maintenance
	Recheck     *Chore // something in a queue that no event named may be ready

	opts Options
	// Worth reports whether the store is to be asked for a task of an agent.
	ShouldClaim func(ctx context.Context, row *signalbox.Agent, isolated bool) (bool, error)
	// Strange is how long an agent has been gone that is not in the book; nil: such
	// an agent is others' concern. Mu is held.
	UnknownAway func(name string, now time.Time) time.Duration

	Mu       sync.Mutex // guards what follows
	Lanes    map[string]A
	Order    []A          // by name
	Runs     map[string]R // by task
	Draining bool
	Stopped  bool
	ready    list.List             // of A: those with room that no task was announced for
	kinds    map[string]*list.List // the same, by kind
	freed    int64                 // counts slots that became free
	resumed  int64                 // counts queues that were resumed
	missed   int64                 // counts tasks for which nobody was woken
	starved  bool                  // a claim found nothing, perhaps because of a ceiling over all agents
}

// Open begins a book in which nothing stands, and returns the options with their
// defaults. Its chores are named by what.
func (b *Registry[A, R]) Open(e *engine.Engine, o Options, what string) Options {
	b.Engine, b.opts, b.ID = e, o.withDefaults(), e.Info().ID
	b.Log = b.opts.Log
	b.Ctx, b.cancel = context.WithCancel(context.Background())
	b.Lanes, b.Runs, b.kinds = map[string]A{}, map[string]R{}, map[string]*list.List{}
	b.Maintenance.Log, b.Maintenance.Turn = b.Log, func() { b.Turn(what, "", 0) }
	b.opts.Backstop.add(func(ctx context.Context, counts store.Counts) {
		b.resolveStranded(ctx, counts)
		b.kickQueues(counts)
	})
	return b.opts
}

// Close ends all goroutines.
func (b *Registry[A, R]) Close() {
	b.Mu.Lock()
	b.Stopped = true
	b.Mu.Unlock()
	b.cancel()
	b.Group.Wait()
}

// Spawn starts a goroutine that Close waits for. After Close it does nothing:
// changes that others make are still heard of.
func (b *Registry[A, R]) Spawn(f func()) {
	b.Mu.Lock()
	defer b.Mu.Unlock()
	if !b.Stopped {
		b.Group.Go(f)
	}
}

// Turn is where a goroutine goes on after it has waited (Options.Turn).
func (b *Registry[A, R]) Turn(what, of string, n int64) {
	if b.opts.Turn != nil {
		b.opts.Turn(what, of, n)
	}
}

// Holds reports whether an agent is this director's at this moment, by the clock
// that its lease is measured by.
func (b *Registry[A, R]) Holds(agent string) bool { return b.opts.Holds == nil || b.opts.Holds(agent) }

// Limits are those of the runs.
func (b *Registry[A, R]) Limits() Limits {
	return Limits{Stall: b.opts.StallLimit, Grace: b.opts.RunGrace, TTL: b.Engine.ExecutionTTL()}
}

// Put adds an agent. Mu is held.
func (b *Registry[A, R]) Put(a A) {
	name := a.Base().Name
	b.Lanes[name] = a
	b.Order = slices.Insert(b.Order, b.index(name), a)
}

// Remove takes an agent off the book. Mu is held.
func (b *Registry[A, R]) Remove(a A) {
	l := a.Base()
	l.Removed = true
	b.Update(a)
	delete(b.Lanes, l.Name)
	at := b.index(l.Name)
	b.Order = slices.Delete(b.Order, at, at+1)
}

func (b *Registry[A, R]) index(name string) int {
	at, _ := slices.BinarySearchFunc(b.Order, name, func(a A, name string) int { return strings.Compare(a.Base().Name, name) })
	return at
}

// Mark keeps the book true after something about an agent has changed: a task
// that becomes ready finds it there, and those who show agents are told where it
// is to be shown otherwise. Mu is held.
func (b *Registry[A, R]) Update(a A) {
	l := a.Base()
	if state := l.visibleState(a.Withheld()); state != l.reported {
		l.reported = state
		b.Engine.AgentChanged(l.Name)
	}
	ready := min(b.Free(a, false), a.ClaimsPerWake()) > l.Announced()
	switch {
	case ready == l.Ready() && l.inKind == l.Row.Kind:
	case ready:
		b.unready(l)
		if b.kinds[l.Row.Kind] == nil {
			b.kinds[l.Row.Kind] = list.New()
		}
		l.inKind, l.all, l.kind = l.Row.Kind, b.ready.PushBack(a), b.kinds[l.Row.Kind].PushBack(a)
	default:
		b.unready(l)
	}
}

func (b *Registry[A, R]) unready(l *Lane[R]) {
	if !l.Ready() {
		return
	}
	b.ready.Remove(l.all)
	of := b.kinds[l.inKind]
	if of.Remove(l.kind); of.Len() == 0 {
		delete(b.kinds, l.inKind)
	}
	l.all, l.kind = nil, nil
}

// Free is how many tasks an agent could be offered now. Mu is held.
func (b *Registry[A, R]) Free(a A, isolated bool) int {
	l := a.Base()
	switch {
	case l.Removed, !l.Presence.Up():
		return 0
	case isolated && l.Bypass.state == bypassPaused, !isolated && (l.drained || a.Withheld() != ""):
		return 0
	}
	return l.Health.Room(max(0, a.Room(isolated)))
}

// LiveAgent implements engine.Live.
func (b *Registry[A, R]) LiveAgent(name string) (engine.LiveAgent, bool) {
	b.Mu.Lock()
	defer b.Mu.Unlock()
	a, known := b.Lanes[name]
	if !known || a.Base().Removed {
		return engine.LiveAgent{}, false
	}
	return b.live(a), true
}

// Agents implements engine.Live.
func (b *Registry[A, R]) Agents() []engine.LiveAgent {
	b.Mu.Lock()
	defer b.Mu.Unlock()
	live := make([]engine.LiveAgent, len(b.Order))
	for i, a := range b.Order {
		live[i] = b.live(a)
	}
	return live
}

// Output returns what is known of the log of a running task from byte after.
// While there is nothing it waits until there is, the run ends, the wait is
// over or ctx ends. ok is false if nobody follows the task here.
func (b *Registry[A, R]) Output(ctx context.Context, id string, after int64, wait time.Duration) (out api.Output, ok bool) {
	b.Mu.Lock()
	f, known := b.Runs[id]
	if !known {
		b.Mu.Unlock()
		return out, false
	}
	r := f.Execution()
	t := r.Task
	b.Mu.Unlock()
	return Output(ctx, &t, r.Tail, after, wait)
}

// Renew moves the end of the leases of what the agents were heard of lately.
func (b *Registry[A, R]) Renew(ctx context.Context) error {
	b.Mu.Lock()
	now, every := b.opts.Monotonic(), b.Engine.RenewInterval()
	var held []signalbox.Task
	for _, f := range b.Runs {
		if r := f.Execution(); now.Sub(r.Heard) < 2*every { // within the last two renewals
			r.Renewed = true
			held = append(held, r.Task)
		}
	}
	b.Mu.Unlock()
	return b.Engine.Renew(ctx, held)
}
