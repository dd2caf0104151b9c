package push

import (
	"cmp"
	"context"
	"log/slog"
	"maps"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/api"
	"github.com/signalbox-ai/signalbox/internal/engine"
	"github.com/signalbox-ai/signalbox/internal/execution"
)

// Defaults, from the work-queue seed (DispatchTimeout, PollInterval).
const (
	DefaultDispatchTimeout = 30 * time.Second
	DefaultPollInterval    = 5 * time.Second
	DefaultRetention       = 7 * 24 * time.Hour
	DefaultTick            = time.Second
	DefaultFollowWait      = 30 * time.Second
	DefaultAskTimeout      = 5 * time.Second
	DefaultConfirm         = time.Second
	DefaultProbe           = 5 * time.Second
)

// Options configures a Dispatcher. Zero fields take the defaults.
type Options struct {
	DispatchTimeout time.Duration // for an agent's answer to an offer
	PollInterval    time.Duration // for agents without long poll
	FollowWait      time.Duration // how long one long poll lasts
	AskTimeout      time.Duration // for one question to an agent
	Confirm         time.Duration // after which "never seen" is asked for again, and then believed
	Probe           time.Duration // silence of an agent after which it is asked for its status
	SessionGrace    time.Duration // absence of an agent before its session tasks are dealt with
	Keep            engine.Keep   // of ended tasks
	Tick            time.Duration // the backstop behind the events
	// StallLimit stops a run that made no progress for so long; 0: no limit, or
	// signalbox.StallByProgress.
	StallLimit time.Duration
	// RunGrace is how long a run may overstay its timeout_seconds, which its
	// agent keeps, before it is stopped from here.
	RunGrace time.Duration
	// Transport carries the requests. It must tell httptrace when it has got a
	// connection, as http.Transport does: a request that ended before that is
	// known not to have reached its agent.
	Transport http.RoundTripper
	Traces    execution.Traces // nil: agents are told of no trace
	// Holds reports whether this director dispatches to an agent, where several
	// are over the store: Gained and Lost say when that begins and ends. nil:
	// it dispatches to all, from Start on.
	Holds func(agent string) bool
	// Generation is that of the store (store.Shared). nil: it has but one.
	Generation func() int64
	// Relisted is told that the agents may be others than before (Names). It
	// must not wait.
	Relisted func()
	// Turn is called by each goroutine here when it has waited for something,
	// and when it begins, before it looks at anything: a simulation lets one at a
	// time go on, in an order of its own. what, of and fence name it. nil: all go
	// on at once.
	Turn func(what, of string, fence int64)
	Log  *slog.Logger
	// Monotonic is the clock by which silence is measured: time.Now, whose
	// readings carry the monotonic clock.
	Monotonic func() time.Time
}

// Dispatcher gives waiting tasks to agents and follows them. It implements
// engine.Live and the director's Runs.
type Dispatcher struct {
	engine *engine.Engine
	opts   Options
	log    *slog.Logger
	id     string // of the store; agents compare fences within it

	generation atomic.Int64 // of the store, as it was looked at last

	ctx    context.Context // of all goroutines
	cancel context.CancelFunc
	group  sync.WaitGroup // every goroutine

	mu       sync.Mutex
	lanes    map[string]*lane
	order    []*lane         // by name
	open     []*lane         // those with a free slot that nothing was announced to, by name (open.go)
	runs     map[string]*run // by task id
	pulls    map[string]bool // agents that pull: they have no lane
	mine     map[string]bool // agents that this director dispatches to, where there are several
	draining bool
	stopped  bool
	fences   map[string]int64 // highest fence an agent reported
	first    int              // where the backstop begins to look for a free agent
	freed    int64            // counts slots that became free
	resumed  int64            // counts queues that were resumed
	starved  bool             // a claim found nothing, perhaps because of a ceiling over all agents
	started  time.Time        // monotonic

	adopted chan struct{}   // closed when the tasks in flight have been taken up
	work    *execution.Work // runs, and claims under way

	maintenance execution.Maintenance
	refresh     *execution.Chore // the list of agents changed
	recheck     *execution.Chore // something in a queue that no event named may be ready
}

// New returns a dispatcher that does nothing until Start.
func New(e *engine.Engine, opts Options) *Dispatcher {
	opts.DispatchTimeout = cmp.Or(opts.DispatchTimeout, DefaultDispatchTimeout)
	opts.PollInterval = cmp.Or(opts.PollInterval, DefaultPollInterval)
	opts.SessionGrace = cmp.Or(opts.SessionGrace, execution.DefaultSessionGrace)
	opts.Keep.For = cmp.Or(opts.Keep.For, DefaultRetention)
	opts.Tick = cmp.Or(opts.Tick, DefaultTick)
	opts.FollowWait = cmp.Or(opts.FollowWait, DefaultFollowWait)
	opts.AskTimeout = cmp.Or(opts.AskTimeout, DefaultAskTimeout)
	opts.Confirm = cmp.Or(opts.Confirm, DefaultConfirm)
	opts.Probe = cmp.Or(opts.Probe, DefaultProbe)
	opts.RunGrace = cmp.Or(opts.RunGrace, execution.DefaultRunGrace)
	// An agent that is heard once in a long poll must not look silent.
	opts.FollowWait = min(opts.FollowWait, e.ExecutionTTL()/4)
	opts.PollInterval = min(opts.PollInterval, e.ExecutionTTL()/4)
	if opts.Transport == nil {
		opts.Transport = NewTransport()
	}
	opts.Log = cmp.Or(opts.Log, slog.New(slog.DiscardHandler))
	if opts.Monotonic == nil {
		opts.Monotonic = time.Now
	}
	d := &Dispatcher{
		engine: e, opts: opts, log: opts.Log, id: e.Info().ID,
		lanes: map[string]*lane{}, mine: map[string]bool{}, runs: map[string]*run{}, fences: map[string]int64{},
		adopted: make(chan struct{}), work: execution.NewWork(),
	}
	r := rounds{d: d}
	d.maintenance = execution.Maintenance{Log: d.log, Turn: func() { d.turn("maintenance", "", 0) }, Round: r.round}
	d.refresh = d.maintenance.Chore("agents not loaded", d.loadAgents)
	d.recheck = d.maintenance.Chore("waiting tasks not looked for", d.kickWaiting)
	if opts.Generation != nil {
		d.generation.Store(opts.Generation())
	}
	e.SetLive(d)
	e.Observe(d.applied)
	if opts.Turn == nil { // else nothing goes on beside the one whose turn it is
		e.SetAhead(d.ahead)
	}
	return d
}

// Start takes up the tasks that were in flight when the last director ended,
// asking each agent before it decides, and begins to dispatch. An error means
// that the store cannot be read, and nothing was started.
func (d *Dispatcher) Start(ctx context.Context) error {
	d.ctx, d.cancel = context.WithCancel(context.WithoutCancel(ctx))
	d.started = d.opts.Monotonic()
	err := d.loadAgents(ctx)
	if err == nil && d.alone() {
		err = d.adopt(ctx, d.terms())
	}
	if err != nil {
		d.Stop()
		return err
	}
	if d.alone() {
		d.ready(d.terms())
	}
	close(d.adopted)
	d.spawn(func() { d.maintenance.Run(d.ctx, 0) })
	return nil
}

// spawn starts a goroutine that Stop waits for. After Stop it does nothing:
// changes that others make still call applied.
func (d *Dispatcher) spawn(f func()) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if !d.stopped {
		d.group.Go(f)
	}
}

// turn is where a goroutine goes on after it has waited (Options.Turn).
func (d *Dispatcher) turn(what, of string, fence int64) {
	if d.opts.Turn != nil {
		d.opts.Turn(what, of, fence)
	}
}

// Drain ends dispatching: no new claims. It returns when no run is left or
// ctx ends, with the number of runs that are left.
func (d *Dispatcher) Drain(ctx context.Context) int {
	d.mu.Lock()
	d.draining = true
	d.mu.Unlock()
	return d.work.Wait(ctx)
}

// CancelRunning asks every agent to stop what it runs, as at a shutdown that
// leaves nothing behind.
func (d *Dispatcher) CancelRunning(ctx context.Context, by string) {
	for _, r := range d.running() {
		_, err := d.engine.Cancel(ctx, r.taskID, by)
		if err != nil && signalbox.CodeOf(err) != signalbox.CodeAlreadyEnded {
			d.log.Warn("not cancelled", "queue_id", r.taskID, "error", err)
		}
	}
}

// Stop ends all goroutines. What runs is left to its agents; the next
// director takes it up.
func (d *Dispatcher) Stop() {
	d.mu.Lock()
	d.stopped = true
	d.mu.Unlock()
	if d.cancel == nil {
		return
	}
	d.cancel()
	d.group.Wait()
	if t, ok := d.opts.Transport.(interface{ CloseIdleConnections() }); ok {
		t.CloseIdleConnections()
	}
}

func (d *Dispatcher) running() []*run {
	d.mu.Lock()
	defer d.mu.Unlock()
	return slices.Collect(maps.Values(d.runs))
}

// LiveAgent implements engine.Live.
func (d *Dispatcher) LiveAgent(name string) (engine.LiveAgent, bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	l := d.lanes[name]
	if l == nil || l.removed {
		return engine.LiveAgent{}, false
	}
	return d.live(l), true
}

// Agents implements engine.Live.
func (d *Dispatcher) Agents() []engine.LiveAgent {
	d.mu.Lock()
	defer d.mu.Unlock()
	live := make([]engine.LiveAgent, len(d.order))
	for i, l := range d.order {
		live[i] = d.live(l)
	}
	return live
}

// Output returns what is known of the log of a running task from byte after.
// While there is nothing it waits until there is, the run ends, the wait is
// over or ctx ends. ok is false if nobody follows the task here.
func (d *Dispatcher) Output(ctx context.Context, id string, after int64, wait time.Duration) (out api.Output, ok bool) {
	d.mu.Lock()
	r := d.runs[id]
	d.mu.Unlock()
	if r == nil {
		return api.Output{}, false
	}
	t := r.row()
	return execution.Output(ctx, &t, r.Tail, after, wait)
}
