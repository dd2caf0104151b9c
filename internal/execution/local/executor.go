package local

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/internal/engine"
	"github.com/signalbox-ai/signalbox/internal/execution"
	"github.com/signalbox-ai/signalbox/internal/gateway"
	"github.com/signalbox-ai/signalbox/toolqueue"
)

// Defaults.
const (
	DefaultConcurrent = 10   // seed async-task-queue: maxConcurrent
	DefaultCalls      = 1000 // promoted calls in parallel
	DefaultTaskAfter  = 5 * time.Second
)

// Interrupted is the seed's message of a task that a restart ended.
const Interrupted = "Task interrupted before completion (agent restart)"

const (
	// claimers is the number of claiming goroutines of a pool; each call gets its own.
	claimers = 4
	// storeRetry is the first retry delay after a store error.
	storeRetry = 100 * time.Millisecond
	// backstopInterval is how often waiting tasks and lost claims are looked for without an
	// event.
	backstopInterval = 5 * time.Second
	// killCheckInterval is how often unkillable processes are checked.
	killCheckInterval = time.Second
	// storeGrace is how long Stop lets the store record ends of runs.
	storeGrace = 5 * time.Second
	// toolGrace is how long a task waits for its tool while the tool's server has not
	// listed its tools yet.
	toolGrace = time.Minute
)

// Causes for which the executor ends a run.
var (
	errCancelled = errors.New("the task is being cancelled")
	errStopping  = errors.New("the director is stopping")
	errUnclaimed = errors.New("the task of the call could not be claimed: its queue is paused")
	errLost      = errors.New("the task no longer belongs to this director")
	errLapsed    = errors.New("the director could not reach the store for so long that others may take its tasks")
)

// Gateway runs the calls; *gateway.Gateway implements it.
type Gateway interface {
	Tools() []gateway.Tool
	Tool(name string) (gateway.Tool, bool)
	Check(c gateway.Call) error
	Call(ctx context.Context, c gateway.Call) (gateway.Result, error)
	Queues() []toolqueue.Status
}

// Options configures an Executor. Zero fields take the defaults.
type Options struct {
	Engine     *engine.Engine // required
	Gateway    Gateway        // required
	Instance   string         // of the director; signalbox.DefaultInstance
	Concurrent int            // async commands in parallel, 1 to signalbox.MaxAgentSlots
	Calls      int            // promoted calls in parallel
	Retention  time.Duration  // of ended tasks
	Look       time.Duration  // backstop interval; 5 s
	Peers      Peers          // nil: this is the only director over the store
	// Trace puts the trace of a task's run into the context of its call. nil: the call has
	// that of its _meta, if any.
	Trace func(ctx context.Context, queueID string) context.Context
	Log   *slog.Logger
}

// Executor runs tool calls. It implements gateway.Tasks, engine.Live and
// engine.WaitExplainer.
type Executor struct {
	engine   *engine.Engine
	gateway  Gateway
	opts     Options
	log      *slog.Logger
	commands *pool
	calls    *pool
	pools    []*pool // both

	claimCtx     context.Context // of claims; ends first
	stopClaiming context.CancelFunc
	runCtx       context.Context // of runs
	stopRuns     context.CancelCauseFunc
	storeCtx     context.Context // ends storeGrace after Stop
	group        sync.WaitGroup

	mu             sync.Mutex
	runs           map[string]*run    // that hold a slot, by task id
	waiters        map[string]*waiter // calls that are or become tasks and have not been claimed yet
	cancelledEarly map[string]bool    // tasks cancelled between their claim and their run
	started        bool
	draining       bool
	stopped        bool
	lapsed         bool            // the director lease has expired: no claims
	work           *execution.Work // runs and claims in progress

	others []signalbox.Agent // rows of other directors' executors, as last seen

	gates map[string]*queueGate // admission to tool queues, guarded by mu

	maintenance execution.Maintenance
	renewed     execution.Every
	recheck     *execution.Chore // tasks may have changed hands

	unclaimed map[string]int64 // of the rounds: claims seen with a slot and without a run, with their fences
}

var (
	_ gateway.Tasks        = (*Executor)(nil)
	_ engine.Live          = (*Executor)(nil)
	_ engine.WaitExplainer = (*Executor)(nil)
)

// pool is the slots of one queue.
type pool struct {
	kind  string // of the executor's row
	queue string // that it serves
	row   signalbox.Agent
	wake  execution.Signal // one signal for each claimer
	// limit is how many slots runs and claims may hold if runs yield theirs; else 0, and
	// the store's rows are the limit. The rest is guarded by Executor.mu.
	limit   int
	taken   int             // slots held by runs and claims
	wanted  []chan struct{} // runs that want their slot back, first come first served; closed when they get it
	refused bool            // a claim was refused for lack of a slot
	used    int             // slots held by runs
	hung    int             // those of runs that cannot be killed
}

// New returns an executor that does nothing until Start.
func New(o Options) *Executor {
	o.Instance = cmp.Or(o.Instance, signalbox.DefaultInstance)
	o.Concurrent = cmp.Or(o.Concurrent, DefaultConcurrent)
	o.Calls = cmp.Or(o.Calls, DefaultCalls)
	o.Look = cmp.Or(o.Look, backstopInterval)
	o.Log = cmp.Or(o.Log, slog.New(slog.DiscardHandler))
	x := &Executor{
		engine: o.Engine, gateway: o.Gateway, opts: o, log: o.Log,
		commands: &pool{kind: signalbox.ExecutorCommands, queue: signalbox.QueueCommands, wake: make(chan struct{}, claimers), limit: o.Concurrent},
		calls:    &pool{kind: signalbox.ExecutorCalls, queue: signalbox.QueueCalls, wake: make(chan struct{}, claimers)},
		runs:     map[string]*run{}, waiters: map[string]*waiter{}, cancelledEarly: map[string]bool{},
		gates: map[string]*queueGate{},
		work:  execution.NewWork(),
	}
	x.maintenance = execution.Maintenance{Log: o.Log, Round: x.round}
	x.recheck = x.maintenance.Chore("", func(context.Context) error { x.checkOwnership(); return nil })
	x.pools = []*pool{x.commands, x.calls}
	x.commands.row = signalbox.Agent{Name: signalbox.ExecutorName(x.commands.kind, o.Instance), Slots: o.Concurrent}
	x.calls.row = signalbox.Agent{Name: signalbox.ExecutorName(x.calls.kind, o.Instance), Slots: o.Calls}
	x.claimCtx, x.stopClaiming = context.WithCancel(context.Background())
	x.runCtx, x.stopRuns = context.WithCancelCause(context.Background())
	x.storeCtx = context.Background()
	x.engine.Observe(x.applied)
	return x
}

// Start recovers the tasks of a predecessor by the tools' restart policies, and starts to
// run tasks. When it returns no process of an earlier run is left, except unkillable ones,
// which keep their slots.
func (x *Executor) Start(ctx context.Context) error {
	for _, p := range x.pools {
		row, err := x.engine.PutExecutor(ctx, p.kind, x.opts.Instance, p.row.Slots)
		if err != nil {
			return err
		}
		x.mu.Lock()
		p.row = row
		x.mu.Unlock()
	}
	if err := x.recover(ctx); err != nil {
		return err
	}
	x.mu.Lock()
	x.started = true
	x.mu.Unlock()
	for range claimers {
		x.group.Go(func() { x.claimLoop(x.commands, x.opts.Concurrent+maxYielded) })
		x.group.Go(func() { x.claimLoop(x.calls, x.opts.Calls) })
	}
	x.RecheckOwnership()
	x.group.Go(func() { x.maintenance.Run(x.claimCtx, x.opts.Look) })
	x.kickAll()
	return nil
}

// Drain stops claiming, returns what has not started, and waits until nothing runs or ctx
// ends. It returns the number of runs left.
func (x *Executor) Drain(ctx context.Context) int {
	x.mu.Lock()
	x.draining = true
	x.deferWaiting()
	x.mu.Unlock()
	return x.work.Wait(ctx)
}

// Stop ends all runs by the tools' restart policies, and returns when no process of them is
// left, except unkillable ones. Calls that are not tasks yet end with their callers.
func (x *Executor) Stop() {
	x.mu.Lock()
	first := !x.stopped
	x.draining, x.stopped = true, true
	if first {
		var cancel context.CancelFunc
		x.storeCtx, cancel = context.WithCancel(context.Background())
		time.AfterFunc(storeGrace, cancel)
	}
	x.mu.Unlock()
	x.stopClaiming()
	x.stopRuns(errStopping)
	x.group.Wait()
}

// writeCtx is the context of final writes; it ends storeGrace after Stop.
func (x *Executor) writeCtx() context.Context {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.storeCtx
}

func (x *Executor) stopping() bool { return x.runCtx.Err() != nil }

// round is the backstop behind the events.
func (x *Executor) round(ctx context.Context) time.Duration {
	x.putBackLostClaims()
	x.checkOwnership()
	x.kickWaiting()
	if x.renewed.Due(time.Now(), execution.RenewInterval(x.engine)) {
		x.maintenance.LogError(ctx, "leases of tool tasks not renewed", x.engine.Renew(ctx, x.held()))
	}
	return x.opts.Look
}

// checkOwnership stops runs that this director no longer owns, and recovers tasks of
// directors that are gone.
func (x *Executor) checkOwnership() {
	x.compareRuns()
	x.recoverOthers()
}

func (x *Executor) held() []signalbox.Task {
	x.mu.Lock()
	defer x.mu.Unlock()
	held := make([]signalbox.Task, 0, len(x.runs))
	for _, r := range x.runs {
		held = append(held, r.Task)
	}
	return held
}

// kickWaiting wakes the claimers of queues with waiting tasks.
func (x *Executor) kickWaiting() {
	lengths, err := x.engine.Read().Lengths(x.claimCtx, signalbox.QueueCommands, signalbox.QueueCalls)
	if err != nil {
		return // the next round finds out
	}
	for i, p := range x.pools {
		if lengths[i] > 0 {
			p.wake.Send()
		}
	}
}

func (x *Executor) kickAll() {
	for _, p := range x.pools {
		for range cap(p.wake) {
			p.wake.Send()
		}
	}
}
