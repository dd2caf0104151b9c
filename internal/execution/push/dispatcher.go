package push

import (
	"cmp"
	"context"
	"maps"
	"net/http"
	"slices"
	"sync/atomic"
	"time"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/internal/engine"
	"github.com/signalbox-ai/signalbox/internal/execution"
)

// Defaults, from the work-queue seed (DispatchTimeout, PollInterval).
const (
	DefaultDispatchTimeout = 30 * time.Second
	DefaultPollInterval    = 5 * time.Second
	DefaultRetention       = 7 * 24 * time.Hour
	DefaultFollowWait      = 30 * time.Second
	DefaultAskTimeout      = 5 * time.Second
	DefaultConfirm         = time.Second
	DefaultProbe           = 5 * time.Second
)

// Options configures a Dispatcher. Zero fields take the defaults. If Holds is set, Gained
// and Lost say when an agent starts and ceases to be this director's.
type Options struct {
	execution.Options
	DispatchTimeout time.Duration    // for an agent's answer to an offer
	PollInterval    time.Duration    // for agents without long poll
	FollowWait      time.Duration    // how long one long poll lasts
	AskTimeout      time.Duration    // for one request to an agent
	MaxAnswer       int              // bytes of an agent's answer
	Confirm         time.Duration    // delay before "never seen" is confirmed with a second request
	Probe           time.Duration    // silence of an agent after which its status is requested
	Keep            engine.Retention // of ended tasks
	// Transport carries the requests. It must report connections to httptrace, as
	// http.Transport does: a request that failed before it had a connection certainly did
	// not reach its agent.
	Transport http.RoundTripper
	// Generation is store.Shared.Generation; nil: the store has no generations.
	Generation func() int64
	// Relisted is called when Names may have changed. It must not block.
	Relisted func()
}

type registry = execution.Registry[*lane, *run]

// Dispatcher gives waiting tasks to agents and follows them. It implements engine.Live and
// httpapi.Runs.
type Dispatcher struct {
	registry // its Mu guards what is not said otherwise
	opts     Options

	generation atomic.Int64 // of the store, as last seen

	pulls   map[string]bool // pull agents, which have no lane here
	mine    map[string]bool // agents that this director holds, if there are several
	started time.Time       // monotonic

	adopted chan struct{}   // closed when the tasks in flight at the start have been adopted
	work    *execution.Work // runs and claims in progress

	refresh *execution.Chore // the list of agents changed
}

// New returns a dispatcher that does nothing until Start.
func New(e *engine.Engine, opts Options) *Dispatcher {
	opts.DispatchTimeout = cmp.Or(opts.DispatchTimeout, DefaultDispatchTimeout)
	opts.PollInterval = cmp.Or(opts.PollInterval, DefaultPollInterval)
	opts.Keep.For = cmp.Or(opts.Keep.For, DefaultRetention)
	opts.FollowWait = cmp.Or(opts.FollowWait, DefaultFollowWait)
	opts.AskTimeout = cmp.Or(opts.AskTimeout, DefaultAskTimeout)
	opts.MaxAnswer = cmp.Or(opts.MaxAnswer, DefaultMaxAnswer)
	opts.Confirm = cmp.Or(opts.Confirm, DefaultConfirm)
	opts.Probe = cmp.Or(opts.Probe, DefaultProbe)
	// An agent that answers once per long poll must not look silent.
	opts.FollowWait = min(opts.FollowWait, e.Options().ExecutionTTL/4)
	opts.PollInterval = min(opts.PollInterval, e.Options().ExecutionTTL/4)
	if opts.Transport == nil {
		opts.Transport = NewTransport()
	}
	d := &Dispatcher{mine: map[string]bool{}, adopted: make(chan struct{}), work: execution.NewWork()}
	opts.Options = d.Open(e, opts.Options, "maintenance")
	d.opts, d.UnknownAway = opts, d.unknownAway
	d.ShouldClaim = func(_ context.Context, row *signalbox.Agent, _ bool) (bool, error) {
		return d.Holds(row.Name), nil // else Lost is about to be called
	}
	r := rounds{d: d}
	d.Maintenance.Round = r.round
	d.refresh = d.Maintenance.Chore("agents not loaded", d.loadAgents)
	d.Recheck = d.Maintenance.Chore("waiting tasks not looked for", d.WakeForWaiting)
	if opts.Generation != nil {
		d.generation.Store(opts.Generation())
	}
	e.SetLive(d)
	e.Observe(d.applied)
	if opts.Turn == nil { // in a simulation only one goroutine runs at a time
		e.SetEarlyWake(d.earlyWake)
	}
	return d
}

// earlyWake returns a function that wakes an agent for a task about to be queued; nil if
// none could claim it now.
func (d *Dispatcher) earlyWake(queue string) (wake func()) {
	d.Mu.Lock()
	defer d.Mu.Unlock()
	if !d.WantsOf(queue) {
		return nil
	}
	return func() { d.Kick(queue) }
}

// Start adopts the tasks that were in flight when the last director ended, asking each
// agent before it decides, and starts dispatching. On an error the store cannot be read,
// and nothing was started.
func (d *Dispatcher) Start(ctx context.Context) error {
	d.started = d.opts.Monotonic()
	err := d.loadAgents(ctx)
	if err == nil && d.single() {
		err = d.adopt(ctx, d.terms())
	}
	if err != nil {
		d.Stop()
		return err
	}
	if d.single() {
		d.startTerms(d.terms())
	}
	close(d.adopted)
	d.Spawn(func() { d.Maintenance.Run(d.Ctx, 0) })
	return nil
}

// StopClaiming makes no more claims; what runs goes on.
func (d *Dispatcher) StopClaiming() {
	d.Mu.Lock()
	defer d.Mu.Unlock()
	d.Draining = true
}

// Drain stops claiming. It returns when no run is left or ctx ends, with the number of runs
// left.
func (d *Dispatcher) Drain(ctx context.Context) int {
	d.StopClaiming()
	return d.work.Wait(ctx)
}

// CancelRunning cancels all running tasks, for a shutdown that leaves nothing running.
func (d *Dispatcher) CancelRunning(ctx context.Context, by string) {
	for _, r := range d.running() {
		_, err := d.Engine.Cancel(ctx, r.ID, by)
		if err != nil && signalbox.CodeOf(err) != signalbox.CodeAlreadyEnded {
			d.Log.Warn("not cancelled", "queue_id", r.ID, "error", err)
		}
	}
}

// Stop stops all goroutines. Running tasks are left to their agents; the next director
// adopts them.
func (d *Dispatcher) Stop() {
	d.Close()
	if t, ok := d.opts.Transport.(interface{ CloseIdleConnections() }); ok {
		t.CloseIdleConnections()
	}
}

func (d *Dispatcher) running() []*run {
	d.Mu.Lock()
	defer d.Mu.Unlock()
	return slices.Collect(maps.Values(d.Runs))
}
