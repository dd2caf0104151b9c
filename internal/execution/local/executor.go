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
	DefaultCalls      = 1000 // calls that became tasks, side by side
	DefaultTaskAfter  = 5 * time.Second
)

// Interrupted is the seed's text for a task that a restart ended.
const Interrupted = "Task interrupted before completion (agent restart)"

const (
	// claimers is how many goroutines claim for a pool; each call then has its own.
	claimers = 4
	// storeRetry is the first pause after something that the store could not do.
	storeRetry = 100 * time.Millisecond
	// backstop is how often it is looked for what no event named: what waits, and
	// claims whose answer was lost.
	backstopInterval = 5 * time.Second
	// lookEvery is how often it is looked whether what cannot be killed has died.
	killCheckInterval = time.Second
	// storeGrace is how long Stop lets the store take in how a run ended.
	storeGrace = 5 * time.Second
	// toolGrace is how long a task waits for its tool where the tool's server
	// has not said yet which tools it has.
	toolGrace = time.Minute
)

// The causes for which the executor ends a run.
var (
	errCancelled = errors.New("the task is being cancelled")
	errStopping  = errors.New("the director is stopping")
	errUnclaimed = errors.New("the task of the call was not to be had: its queue is paused")
	errLost      = errors.New("the task is no longer in our hands")
	errLapsed    = errors.New("the director could not reach the store for so long that others may take its tasks")
)

// Gateway is what runs the calls; *gateway.Gateway does.
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
	Concurrent int            // async commands side by side, 1 to signalbox.MaxAgentSlots
	Calls      int            // other calls that became tasks, side by side
	Retention  time.Duration  // for which ended tasks stay readable
	Look       time.Duration  // between two looks for what no event named; 5 s
	Peers      Peers          // nil: no other director is over the store
	// Trace puts the trace of the run of a task into a context, for the call
	// that it makes. nil: the call has that of its _meta, if any.
	Trace func(ctx context.Context, queueID string) context.Context
	Log   *slog.Logger
}

// Executor runs the tasks of tools. It implements gateway.Tasks, engine.Live
// and engine.Teller.
type Executor struct {
	engine   *engine.Engine
	gateway  Gateway
	opts     Options
	log      *slog.Logger
	commands *pool
	calls    *pool
	pools    []*pool // both

	claimCtx     context.Context // of those who claim; ends first
	stopClaiming context.CancelFunc
	runCtx       context.Context // of what runs
	stopRuns     context.CancelCauseFunc
	storeCtx     context.Context // ends when the store has had its time, after Stop
	group        sync.WaitGroup

	mu             sync.Mutex
	runs           map[string]*run    // that hold a slot, by task
	waiters        map[string]*waiter // calls that become tasks, or have, and whose task nobody has claimed yet
	cancelledEarly map[string]bool    // tasks that were cancelled between their claim and their run
	started        bool
	draining       bool
	stopped        bool
	lapsed         bool            // the director lease is over: nothing is claimed
	work           *execution.Work // runs, and claims under way

	others []signalbox.Agent // the rows of other directors' executors, as last seen

	gates map[string]*queueGate // to the lines of tool queues, guarded by mu

	maintenance execution.Maintenance
	renewed     execution.Every
	recheck     *execution.Chore // tasks may be in other hands than before

	unclaimed map[string]int64 // of the rounds: claims that were seen with a slot and without a run, with their fences
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
	wake  execution.Signal // a sign for each of those who claim
	// limit is how many slots runs and claims under way may have, where runs
	// yield theirs; else 0, and the rows of the store are the bound. The rest is
	// guarded by Executor.mu.
	limit   int
	taken   int             // slots that they have
	wanted  []chan struct{} // runs that want theirs again, first come first served; closed as they get it
	refused bool            // a claim was refused for want of a slot
	used    int             // slots that runs hold
	hung    int             // of these, those of runs that cannot be killed
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

// Start takes up what a predecessor left, by the tools' restart policies, and
// begins to run tasks. Nothing of a run of before lives when it returns, but
// for what cannot be killed: that keeps its slot.
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

// Drain ends claiming, puts back what has not begun and returns when nothing
// runs or ctx ends, with the number of runs that are left.
func (x *Executor) Drain(ctx context.Context) int {
	x.mu.Lock()
	x.draining = true
	x.deferWaiting()
	x.mu.Unlock()
	return x.work.Wait(ctx)
}

// Stop ends what runs, by the tools' restart policies, and returns when
// nothing of it lives, but for what cannot be killed. Calls that are no tasks
// yet end with their callers.
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

// lastly is the context of what must still be written; it ends a while after
// Stop.
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
	if x.renewed.Due(time.Now(), x.engine.RenewInterval()) {
		x.maintenance.LogError(ctx, "leases of tool tasks not renewed", x.engine.Renew(ctx, x.held()))
	}
	return x.opts.Look
}

// lookAtHands looks whose hands tasks are in: those that run here, and those of
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

// kickWaiting wakes those who claim where something waits.
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
