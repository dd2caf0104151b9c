package dispatch

import (
	"context"
	"log/slog"
	"maps"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/internal/engine"
)

// Defaults, from the work-queue seed (DispatchTimeout, PollInterval) and
// design §3 (SessionGrace).
const (
	DefaultDispatchTimeout = 30 * time.Second
	DefaultPollInterval    = 5 * time.Second
	DefaultSessionGrace    = 60 * time.Second
	DefaultRetention       = 7 * 24 * time.Hour
	DefaultTick            = time.Second
)

// Options configures a Dispatcher. Zero fields take the defaults.
type Options struct {
	DispatchTimeout time.Duration // for an agent's answer to an offer
	PollInterval    time.Duration // for agents without long poll
	SessionGrace    time.Duration // absence of an agent before its session tasks are dealt with
	Retention       time.Duration // for which ended tasks stay readable
	Tick            time.Duration // the backstop behind the events
	Transport       http.RoundTripper
	Log             *slog.Logger
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

	ctx    context.Context // of all goroutines
	cancel context.CancelFunc
	group  sync.WaitGroup // every goroutine

	mu       sync.Mutex
	lanes    map[string]*lane
	order    []*lane // by name
	draining bool
	busy     int              // runs, and claims under way
	fences   map[string]int64 // highest fence an agent reported
	started  time.Time        // monotonic

	left    chan struct{} // busy went down
	care    chan struct{} // a due time may have changed
	refresh chan struct{} // the list of agents changed
}

// New returns a dispatcher that does nothing until Start.
func New(e *engine.Engine, opts Options) *Dispatcher {
	def := func(d *time.Duration, v time.Duration) {
		if *d == 0 {
			*d = v
		}
	}
	def(&opts.DispatchTimeout, DefaultDispatchTimeout)
	def(&opts.PollInterval, DefaultPollInterval)
	def(&opts.SessionGrace, DefaultSessionGrace)
	def(&opts.Retention, DefaultRetention)
	def(&opts.Tick, DefaultTick)
	if opts.Transport == nil {
		opts.Transport = newTransport()
	}
	if opts.Log == nil {
		opts.Log = slog.New(slog.DiscardHandler)
	}
	if opts.Monotonic == nil {
		opts.Monotonic = time.Now
	}
	d := &Dispatcher{
		engine: e, opts: opts, log: opts.Log, id: e.Info().ID,
		lanes: map[string]*lane{}, fences: map[string]int64{},
		left: make(chan struct{}, 1), care: make(chan struct{}, 1), refresh: make(chan struct{}, 1),
	}
	e.SetLive(d)
	e.Observe(d.applied)
	return d
}

// Start takes up the tasks that were in flight when the last director ended,
// asking each agent before it decides, and begins to dispatch. An error means
// that the store cannot be read, and nothing was started.
func (d *Dispatcher) Start(ctx context.Context) error {
	d.ctx, d.cancel = context.WithCancel(context.WithoutCancel(ctx))
	d.started = d.opts.Monotonic()
	if err := d.loadAgents(ctx); err != nil {
		return err
	}
	if err := d.adopt(ctx); err != nil {
		return err
	}
	d.group.Go(d.careLoop)
	return nil
}

// Drain ends dispatching: no new claims. It returns when no run is left or
// ctx ends, with the number of runs that are left.
func (d *Dispatcher) Drain(ctx context.Context) int {
	d.mu.Lock()
	d.draining = true
	d.mu.Unlock()
	for {
		d.mu.Lock()
		busy := d.busy
		d.mu.Unlock()
		if busy == 0 {
			return 0
		}
		select {
		case <-d.left:
		case <-ctx.Done():
			return busy
		}
	}
}

// unbusy notes that a run or a claim is over.
func (d *Dispatcher) unbusy() {
	d.mu.Lock()
	d.busy--
	d.mu.Unlock()
	poke(d.left)
}

// CancelRunning asks every agent to stop what it runs, as at a shutdown that
// leaves nothing behind.
func (d *Dispatcher) CancelRunning(ctx context.Context, by string) {
	for _, r := range d.running() {
		if _, err := d.engine.Cancel(ctx, r.row().ID, by); err != nil {
			d.log.Warn("not cancelled", "queue_id", r.row().ID, "error", err)
		}
	}
}

// Stop ends all goroutines. What runs is left to its agents; the next
// director takes it up.
func (d *Dispatcher) Stop() {
	if d.cancel == nil {
		return
	}
	d.cancel()
	d.group.Wait()
	if t, ok := d.opts.Transport.(*http.Transport); ok {
		t.CloseIdleConnections()
	}
}

func (d *Dispatcher) running() []*run {
	d.mu.Lock()
	defer d.mu.Unlock()
	var runs []*run
	for _, l := range d.order {
		runs = slices.AppendSeq(runs, maps.Values(l.runs))
	}
	return runs
}

// Agents implements engine.Live.
func (d *Dispatcher) Agents() []engine.LiveAgent {
	d.mu.Lock()
	defer d.mu.Unlock()
	live := make([]engine.LiveAgent, len(d.order))
	for i, l := range d.order {
		live[i] = l.live()
	}
	return live
}

// applied hears of every durable change. It runs on the goroutine that made
// the change: it only leaves signs.
func (d *Dispatcher) applied(a engine.Applied) {
	t := a.Task
	switch a.Kind {
	case signalbox.EventAgentAdded, signalbox.EventAgentRemoved:
		poke(d.refresh)
		return
	case signalbox.EventResumed:
		d.kickAll()
		return
	case signalbox.EventRelease:
		d.void(t, true)
	case signalbox.EventCancel:
		if t.State == signalbox.Cancelling {
			d.tellCancelOf(t)
		}
	}
	switch {
	case t.State == signalbox.Pending && t.Ready:
		d.kick(t.Queue)
	case t.State == signalbox.Pending:
		poke(d.care) // it waits for its time: the timer may be set too late
	case t.State.Terminal() && t.SessionID != "":
		d.kick(t.Queue) // the next turn of the session may be ready now
		d.kick(signalbox.AgentQueue(t.Agent))
	}
}

// kick wakes one agent that serves a queue and has a free slot that nobody
// else was woken for. An agent that is not woken is full, and looks for more
// by itself when it is not.
func (d *Dispatcher) kick(queue string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.kickLocked(queue)
}

func (d *Dispatcher) kickLocked(queue string) {
	if name, ok := signalbox.QueueAgent(queue); ok {
		if l := d.lanes[name]; l != nil {
			l.signals++
			poke(l.wake)
		}
		return
	}
	kind, pool := signalbox.QueueKind(queue)
	for _, l := range d.order {
		if (!pool || l.row.Kind == kind) && l.free() > l.signals {
			l.signals++
			poke(l.wake)
			return
		}
	}
}

func (d *Dispatcher) kickAll() {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, l := range d.order {
		poke(l.wake)
	}
}

// kickWaiting wakes one agent for every queue in which something waits.
func (d *Dispatcher) kickWaiting(ctx context.Context) {
	counts, err := d.engine.Read().Counts(ctx)
	if err != nil {
		return // the tick comes again
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	for queue := range counts.Queues {
		d.kickLocked(queue)
	}
}

// laneLoop claims for one agent whenever it is woken.
func (d *Dispatcher) laneLoop(ctx context.Context, l *lane) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-l.wake:
		}
		for d.claimOne(ctx, l) {
		}
	}
}

// claimOne gives the agent one task if it has a free slot and one waits.
func (d *Dispatcher) claimOne(ctx context.Context, l *lane) bool {
	d.mu.Lock()
	l.signals = 0
	able := !d.draining && l.free() > 0
	row, above := l.row, max(l.status.HighestFence, d.fences[l.name])
	if able {
		d.busy++
	}
	d.mu.Unlock()
	if !able {
		return false
	}
	defer d.unbusy()
	claimed, found, err := d.engine.Claim(ctx, row, above)
	if err != nil {
		if ctx.Err() == nil {
			d.log.Error("claim failed", "agent", l.name, "error", err)
		}
		return false
	}
	if !found {
		return false
	}
	d.begin(l, claimed, (*run).dispatch)
	// It took the best head of several queues: what the others were woken
	// for may be left for someone else.
	d.kickWaiting(ctx)
	return true
}

// begin starts a run on its own goroutine.
func (d *Dispatcher) begin(l *lane, c engine.Claimed, first func(*run, context.Context)) {
	ctx, stop := context.WithCancel(d.ctx)
	r := &run{d: d, lane: l, tail: newTail(), stop: stop, claimed: c, heardAt: d.opts.Monotonic()}
	d.mu.Lock()
	l.runs[c.Task.ID] = r
	d.busy++
	d.mu.Unlock()
	d.group.Go(func() {
		defer d.unbusy()
		first(r, ctx)
		stop()
		d.leave(r)
	})
}

// leave takes a run that is over off its lane, and lets the lane look for
// more. When the dispatcher stops, the run is not over: it stays.
func (d *Dispatcher) leave(r *run) {
	r.tail.end()
	d.mu.Lock()
	t := r.claimed.Task
	if r.lane.runs[t.ID] == r {
		delete(r.lane.runs, t.ID)
	}
	if r.withheld {
		r.lane.withheld = append(r.lane.withheld, signalbox.Slot{Agent: t.Agent, Slot: t.Slot, TaskID: t.ID, Fence: t.Fence, Withheld: true})
		poke(r.lane.probing)
	}
	d.mu.Unlock()
	poke(r.lane.wake)
}
