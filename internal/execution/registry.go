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
	"github.com/signalbox-ai/signalbox/internal/accounts"
	"github.com/signalbox-ai/signalbox/internal/engine"
	"github.com/signalbox-ai/signalbox/internal/store"
)

// Options are common to the transports to agents. Zero fields take the defaults.
type Options struct {
	// Holds reports whether this director dispatches to an agent, if several share the
	// store. nil: it dispatches to all.
	Holds        func(agent string) bool
	SessionGrace time.Duration // absence of an agent after which its session tasks are ended or moved
	Tick         time.Duration // interval of the backstop behind the events
	// StallLimit stops a run without progress for that long; 0: no limit, or
	// signalbox.StallByProgress.
	StallLimit time.Duration
	// RunGrace is how far a run may exceed its timeout_seconds, which its agent enforces,
	// before the director stops it.
	RunGrace time.Duration
	Traces   Traces // nil: agents get no trace context
	// Backstop is shared by the transports of a director; nil: this one has its own.
	Backstop *Backstop
	// Turn is called by each goroutine when it starts and whenever it resumes after
	// waiting; a simulation uses it to run one goroutine at a time, in an order of its own.
	// what, of and n identify the goroutine. nil: no such order.
	Turn func(what, of string, n int64)
	Log  *slog.Logger
	// Monotonic is the clock that silence is measured by: time.Now, whose readings carry
	// the monotonic clock.
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

// Agent is a transport's own record of an agent, which embeds a Lane. Its methods are
// called with Registry.Mu held.
type Agent[R Follower] interface {
	comparable
	Base() *Lane[R]
	// Room is how many of its slots, or of its isolated slots, are free for tasks of this
	// director.
	Room(isolated bool) int
	// ClaimsPerWake is how many tasks it claims when it is woken once; 0 if nobody would
	// react.
	ClaimsPerWake() int
	// Withheld says why its slots are offered nothing, by its own report; "" if they are.
	Withheld() string
	// Describe completes its LiveAgent.
	Describe(*engine.LiveAgent)
}

// Registry is what one transport knows of its agents and their runs. A waiting task finds a
// free slot without a tick:
//
//   - A task that becomes ready wakes one agent among those that serve its queue and have
//     room for which no other task was announced: the one that has had that room for
//     longest. If there is none, every agent that serves the queue is full or about to claim.
//   - An agent that is woken, for whatever reason, claims.
//   - What it was woken for and does not claim is passed on to another agent.
type Registry[A Agent[R], R Follower] struct {
	Engine *engine.Engine
	Log    *slog.Logger
	ID     string // of the store; fences are compared within it
	Ctx    context.Context
	cancel context.CancelFunc
	Group  sync.WaitGroup // every goroutine

	Maintenance Maintenance
	Recheck     *Chore // a queue that no event named may have a ready task
	storeNews   *Chore
	stopOver    *Chore // a run may have used up its budget

	opts Options
	// ShouldClaim reports whether it is worth claiming for an agent.
	ShouldClaim func(ctx context.Context, row *signalbox.Agent, isolated bool) (bool, error)
	// UnknownAway is how long an agent that is not registered here has been away; nil: such
	// agents are not handled. Mu is held.
	UnknownAway func(name string, now time.Time) time.Duration

	Mu       sync.Mutex // guards what follows
	Lanes    map[string]A
	Order    []A          // by name
	Runs     map[string]R // by task
	Draining bool
	Stopped  bool
	ready    list.List                // of A: agents with room that no task was announced for
	kinds    map[string]*list.List    // the same, by kind
	freed    int64                    // counts freed slots
	anyShort bool                     // Lane.short of some lane
	resumed  int64                    // counts resumed queues
	missed   int64                    // counts tasks for which no agent could be woken
	news     map[string]accounts.News // of agents' accounts, not stored yet
	starved  bool                     // a claim found nothing, perhaps because of the fleet limit
}

// Open initializes an empty registry and returns the options with their defaults. what
// names its maintenance goroutine for Options.Turn.
func (b *Registry[A, R]) Open(e *engine.Engine, o Options, what string) Options {
	b.Engine, b.opts, b.ID = e, o.withDefaults(), e.Info().ID
	b.Log = b.opts.Log
	b.Ctx, b.cancel = context.WithCancel(context.Background())
	b.Lanes, b.Runs, b.kinds = map[string]A{}, map[string]R{}, map[string]*list.List{}
	b.news, b.storeNews = map[string]accounts.News{}, b.Maintenance.Chore("what agents tell of their accounts is not stored", b.storeAccounts)
	b.stopOver = b.Maintenance.Chore("runs over their budget not stopped", b.stopOverBudget)
	b.Maintenance.Log, b.Maintenance.Turn = b.Log, func() { b.Turn(what, "", 0) }
	b.opts.Backstop.add(func(ctx context.Context, counts store.Counts) {
		b.resolveStranded(ctx, counts)
		b.kickQueues(counts)
	})
	return b.opts
}

// Close stops all goroutines and waits for them.
func (b *Registry[A, R]) Close() {
	b.Mu.Lock()
	b.Stopped = true
	b.Mu.Unlock()
	b.cancel()
	b.Group.Wait()
}

// Spawn starts a goroutine that Close waits for. After Close it does nothing, since changes
// by others are still observed.
func (b *Registry[A, R]) Spawn(f func()) {
	b.Mu.Lock()
	defer b.Mu.Unlock()
	if !b.Stopped {
		b.Group.Go(f)
	}
}

// Turn calls Options.Turn.
func (b *Registry[A, R]) Turn(what, of string, n int64) {
	if b.opts.Turn != nil {
		b.opts.Turn(what, of, n)
	}
}

// Holds reports whether this director dispatches to an agent at this moment, by the clock
// that measures its lease.
func (b *Registry[A, R]) Holds(agent string) bool { return b.opts.Holds == nil || b.opts.Holds(agent) }

func (b *Registry[A, R]) Limits() Limits {
	return Limits{Stall: b.opts.StallLimit, Grace: b.opts.RunGrace, TTL: b.Engine.Options().ExecutionTTL}
}

// Put adds an agent. Mu is held.
func (b *Registry[A, R]) Put(a A) {
	name := a.Base().Name
	b.Lanes[name] = a
	b.Order = slices.Insert(b.Order, b.index(name), a)
}

// Remove removes an agent. Mu is held.
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

// Update must be called after an agent's state has changed: it adds the agent to or removes
// it from the ready lists, and notifies observers if its LiveAgent has changed. Mu is held.
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

// Output returns the log of a running task from byte after. Without new output it waits
// until there is some, the run ends, wait is over or ctx ends. ok is false if the task is
// not followed here.
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

// RenewInterval is how often leases are renewed: one missed renewal does no harm.
func RenewInterval(e *engine.Engine) time.Duration { return e.Options().ExecutionTTL / 4 }

// Renew extends the leases of runs that were heard of recently.
func (b *Registry[A, R]) Renew(ctx context.Context) error {
	b.Mu.Lock()
	now, every := b.opts.Monotonic(), RenewInterval(b.Engine)
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
