package engine

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"io"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/internal/accounts"
	"github.com/signalbox-ai/signalbox/internal/budget"
	"github.com/signalbox-ai/signalbox/internal/callgraph"
	"github.com/signalbox-ai/signalbox/internal/runtimes"
	"github.com/signalbox-ai/signalbox/internal/seal"
	"github.com/signalbox-ai/signalbox/internal/store"
)

// Defaults, from the seeds (work-queue: MaxSize, MaxAttempts; execution-queue:
// ExecutionTTL) and design §3.
const (
	DefaultMaxSize      = 50
	DefaultMaxAttempts  = 3
	DefaultAgeStep      = 60 * time.Second
	DefaultExecutionTTL = 600 * time.Second
	DefaultMaxChats     = 3                 // seed execution-queue: MAX_QUEUE_SIZE
	DefaultWaitTimeout  = 120 * time.Second // seed execution-queue: QUEUE_WAIT_TIMEOUT
	DefaultBypassFleet  = 16
	// DefaultBypassTimeout is the limit on the run of a bypass task that gives
	// none, in seconds.
	DefaultBypassTimeout = 300
)

// Options configures an Engine. Zero fields take the defaults above.
type Options struct {
	MaxSize      int              // waiting tasks that the limit "work" allows, from 1
	MaxAttempts  int              // dispatches that may fail before a task does, from 1
	AgeStep      time.Duration    // how much waiting one step of priority outweighs
	ExecutionTTL time.Duration    // slot lease: silence after which an execution is lost
	MaxChats     int              // chats that may wait for one agent, from 1
	WaitTimeout  time.Duration    // of tasks with overflow wait that do not set one
	OnLost       signalbox.OnLost // of queued tasks and chats that do not set one; "" is fail
	BypassSlots  int              // isolated executions per agent; 0: as many as it offers
	BypassFleet  int              // isolated executions over all agents
	MaxCommands  int              // command tasks that may wait; 0: no limit
	Fleet        int              // executions over all agents, bypass excluded; 0: no limit
	SubmitTasks  int              // tasks that one principal may submit per minute; 0: no limit
	SubmitBytes  int              // bytes of prompts, arguments and env per principal and minute; 0: no limit
	// SourcePriority is the default priority of tasks by source. Empty: 0 for all. Ageing
	// (AgeStep) prevents starvation.
	SourcePriority map[signalbox.Source]int
	Reserve        map[string]accounts.Reserve // by account: what is kept for people
	Budgets        signalbox.Budgets
	Resources      map[string]signalbox.Resource // that tasks may need
	Sealer         *seal.Sealer                  // required
	Now            func() time.Time
	Random         io.Reader // for ids and jitter; safe for concurrent use
	Log            *slog.Logger
}

// Engine applies the rules to a store. Its methods are safe for concurrent
// use and return *signalbox.Error.
type Engine struct {
	store       store.Store
	opts        Options
	log         *slog.Logger
	hub         hub
	runs        *runtimes.Cache
	accounts    *accounts.Book
	budgets     *budget.Book
	stats       statsCache
	live        []Live
	inCall      func(execution string) bool // this and toolCalls: see SetToolCalls
	toolCalls   func(execution string) []signalbox.ToolCall
	trace       SubmitTrace // nil: submits are not traced
	following   atomic.Bool // other directors share the store
	calls       *callgraph.Index
	rates       rates
	stranded    sync.Map // of *strandedScan, by queue
	earlyWake   earlyWake
	pruneCursor store.EndedCursor // where the next pruning of owners over their limit starts
}

// New returns an engine over a store.
func New(s store.Store, opts Options) *Engine {
	opts.MaxSize = cmp.Or(opts.MaxSize, DefaultMaxSize)
	opts.MaxAttempts = cmp.Or(opts.MaxAttempts, DefaultMaxAttempts)
	opts.AgeStep = cmp.Or(opts.AgeStep, DefaultAgeStep)
	opts.ExecutionTTL = cmp.Or(opts.ExecutionTTL, DefaultExecutionTTL)
	opts.MaxChats = cmp.Or(opts.MaxChats, DefaultMaxChats)
	opts.WaitTimeout = cmp.Or(opts.WaitTimeout, DefaultWaitTimeout)
	opts.OnLost = cmp.Or(opts.OnLost, signalbox.LostFail)
	opts.BypassFleet = cmp.Or(opts.BypassFleet, DefaultBypassFleet)
	if opts.Now == nil {
		opts.Now = time.Now
	}
	opts.Random = cmp.Or(opts.Random, rand.Reader)
	opts.Log = cmp.Or(opts.Log, slog.New(slog.DiscardHandler))
	e := &Engine{
		toolCalls: func(string) []signalbox.ToolCall { return nil },
		store:     s, opts: opts, log: opts.Log, hub: hub{waiters: map[string]map[chan struct{}]struct{}{}},
		calls: callgraph.NewIndex(),
		runs:  runtimes.New(s), accounts: accounts.NewBook(), budgets: budget.NewBook(opts.Budgets),
		stats: statsCache{stats: map[string]queueStats{}, refreshing: map[string]bool{}},
		rates: rates{tasks: perMinute(opts.SubmitTasks), bytes: perMinute(opts.SubmitBytes)},
	}
	e.earlyWake.unpublished = map[string]chan struct{}{}
	e.Observe(e.noteStranded)
	e.Observe(e.noteBudgets)
	return e
}

// Now returns the engine's time in UTC, truncated to the millisecond.
func (e *Engine) Now() time.Time { return e.opts.Now().UTC().Truncate(time.Millisecond) }

// Read returns the store's reader.
func (e *Engine) Read() store.Reader { return e.store }

// Info describes the store.
func (e *Engine) Info() store.Info { return e.store.Info() }

// Options returns the options of New, with defaults filled in.
func (e *Engine) Options() Options { return e.opts }

// LiveAgent is the dispatcher's current view of an agent.
type LiveAgent struct {
	signalbox.Agent
	Up      bool
	Held    bool   // offers are withheld: it said busy, or is not yet known to be free
	Message string // why it is down or held
	// DownSince is when it went down; StrandedAt is when its session tasks are ended or
	// moved (ResolveStranded). Both are zero while it is up, or where another director
	// tracks it.
	DownSince, StrandedAt time.Time
	Closed                *signalbox.ClosedGate // it gets no work after failures of its own, and Text says why; nil: it is open
	// BackedOff: after a failure it gets no offers for a while, not even isolated
	// executions.
	BackedOff bool
	InUse     int // slots
	// Isolated executions (bypass): slots offered and in use.
	IsolatedSlots, IsolatedInUse int
	// Sessions: it lists its conversations and can start one under a given id. Terminal: it
	// offers terminals. Landing: it takes tasks that land work.
	Sessions, Terminal, Landing bool
	TaskEnv                     []string // names of variables that callers other than admins may set
	TaskChecks                  signalbox.TaskChecks
	Steps                       *Steps // step statistics of its runs, kind llm; nil: not reported
	LastHeard                   time.Time
	LastProgress                time.Time
	// Progress is when each running task last printed, by task id; zero: not yet. nil for
	// an agent that runs one task at a time.
	Progress map[string]time.Time
	// Notes are problems that it reports for running tasks, by task id, with env values
	// masked.
	Notes map[string]string
}

// Steps are an agent's statistics of tool calls within steps, since it started.
type Steps struct {
	// tool calls per run
	Limit          int
	Calls          map[string]int64 // by outcome
	Queued, Exempt int64            // of these
}

// Live is a source of agents' current state, implemented by the dispatchers and by the
// director's own executor; each has agents of its own. Why, ETA and calls that need an
// agent at once use it.
type Live interface {
	Agents() []LiveAgent
	LiveAgent(name string) (a LiveAgent, known bool)
}

// SetLive sets the source of live agents, AddLive adds another one. Call them before the
// engine is used.
func (e *Engine) SetLive(l Live) { e.live = []Live{l} }

// AddLive: see SetLive.
func (e *Engine) AddLive(l Live) { e.live = append(e.live, l) }

// SetToolCalls sets the functions that report whether an execution has a tool call waiting or
// running, and its tool calls that have ended. Call it before the engine is used.
func (e *Engine) SetToolCalls(inCall func(execution string) bool, ended func(execution string) []signalbox.ToolCall) {
	e.inCall, e.toolCalls = inCall, ended
}

// ToolCalls returns the tool calls of an execution that came through this process and have ended.
func (e *Engine) ToolCalls(execution string) []signalbox.ToolCall { return e.toolCalls(execution) }

// LiveAgents returns the current state of all agents.
func (e *Engine) LiveAgents() []LiveAgent {
	var all []LiveAgent
	for _, l := range e.live {
		all = append(all, l.Agents()...)
	}
	return all
}

// LiveAgent returns the current state of an agent.
func (e *Engine) LiveAgent(name string) (a LiveAgent, known bool) {
	for _, l := range e.live {
		if a, known = l.LiveAgent(name); known {
			break
		}
	}
	return a, known
}

// apply applies event ev to a task. row is the row if the caller has it, which saves a
// read; it is read again if it has changed.
func (e *Engine) apply(ctx context.Context, id string, row *signalbox.Task, ev signalbox.Event) (signalbox.Task, error) {
	for {
		if row == nil {
			t, err := e.store.Task(ctx, id)
			if err != nil {
				return t, err
			}
			row = &t
		}
		before := *row
		ev.Now = e.Now()
		if ev.Result != nil && ev.Result.Calls == nil {
			ev.Result.Calls = e.ToolCalls(id)
		}
		change, err := signalbox.Next(before, ev)
		if err != nil {
			return before, err
		}
		if change.Task == before && change.Slot == signalbox.SlotKeep && change.Result == nil && !change.Session {
			return before, nil // nothing new
		}
		after, err := e.store.Apply(ctx, change, ev.Now)
		if errors.Is(err, store.ErrStale) {
			row = nil
			continue
		}
		if err != nil {
			return before, err
		}
		if change.Session {
			e.calls.SessionBound(after.SessionID, after.Agent)
		}
		if change.Account != nil {
			e.accountStale(ctx, change.Account.Account)
		}
		e.Publish(Applied{From: before.State, Task: after, Kind: change.Entry.Kind, By: change.Entry.By, Used: change.Used()})
		return after, nil
	}
}

// tryApply applies an event to a task, as the caller read it, and reports whether it did:
// not if the task was claimed, ended or was deleted first.
func (e *Engine) tryApply(ctx context.Context, t *signalbox.Task, ev signalbox.Event) (bool, error) {
	_, err := e.apply(ctx, t.ID, t, ev)
	switch signalbox.CodeOf(err) {
	case signalbox.CodeConflict, signalbox.CodeAlreadyEnded, signalbox.CodeStaleFence, signalbox.CodeNotFound:
		return false, nil
	}
	return err == nil, err
}

// tryAll applies an event to tasks, as the caller read them, and returns to how many.
func (e *Engine) tryAll(ctx context.Context, tasks []signalbox.Task, ev signalbox.Event) (n int, err error) {
	for i := range tasks {
		did, err := e.tryApply(ctx, &tasks[i], ev)
		if err != nil {
			return n, err
		}
		if did {
			n++
		}
	}
	return n, nil
}

// Publish reports a durable change to observers and waiters.
func (e *Engine) Publish(a Applied) {
	if t := &a.Task; t.State == signalbox.Completed && a.Kind == signalbox.EventFinish {
		e.runs.Add(t.Agent, t.EndedAt.Sub(t.StartedAt))
	}
	if !e.following.Load() {
		e.calls.TaskChanged(&a.Task)
	}
	e.hub.publish(&a)
}
