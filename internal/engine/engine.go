package engine

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"sync/atomic"
	"time"

	"github.com/signalbox-ai/signalbox"
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
	WaitTimeout  time.Duration    // of tasks with overflow wait that give none
	OnLost       signalbox.OnLost // of queued tasks and chats that give none; "" is fail
	BypassSlots  int              // isolated executions of one agent; 0: as many as it offers
	BypassFleet  int              // isolated executions of all agents
	MaxCommands  int              // command tasks that may wait; 0: any number
	Fleet        int              // executions of all agents, the bypass apart; 0: no ceiling
	SubmitTasks  int              // tasks that one principal may submit in a minute; 0: any number
	SubmitBytes  int              // and bytes of their prompts, arguments and env; 0: any number
	// SourcePriority is the priority of tasks that give none, by their source.
	// Empty: 0 for all. Ageing keeps it from starving anyone (AgeStep).
	SourcePriority map[signalbox.Source]int
	Sealer         *seal.Sealer // required
	Now            func() time.Time
	Random         io.Reader // for ids and jitter; safe for concurrent use
	Log            *slog.Logger
}

// Engine applies the rules to a store. Its methods are safe for concurrent
// use and return *signalbox.Error.
type Engine struct {
	store     store.Store
	opts      Options
	log       *slog.Logger
	hub       hub
	runs      runTimes
	live      Live
	calls     func(execution string) bool // see SetCalls
	trace     SubmitTrace                 // nil: submits are not traced
	following atomic.Bool                 // other directors are over the same store
	book      callBook
	rates     rates
	strands   strands
	ahead     ahead
	pruned    store.EndedSpot // where the search for tasks of owners who have too much goes on
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
		store: s, opts: opts, log: opts.Log, live: noAgents{},
		rates: rates{tasks: float64(opts.SubmitTasks), bytes: float64(opts.SubmitBytes)},
	}
	e.hub.init()
	e.Observe(e.strands.observe)
	e.book.init()
	e.runs.init(s, e.Now)
	return e
}

// Now is the engine's clock, UTC, cut to the millisecond.
func (e *Engine) Now() time.Time { return e.opts.Now().UTC().Truncate(time.Millisecond) }

// Read gives the reads of the store.
func (e *Engine) Read() store.Reader { return e.store }

// Info says what the store is.
func (e *Engine) Info() store.Info { return e.store.Info() }

// MaxSize is the cap of the limit "work".
func (e *Engine) MaxSize() int { return e.opts.MaxSize }

// MaxCommands is the cap of the limit "commands", 0: there is none.
func (e *Engine) MaxCommands() int { return e.opts.MaxCommands }

// ExecutionTTL is the length of the slot lease.
func (e *Engine) ExecutionTTL() time.Duration { return e.opts.ExecutionTTL }

// LiveAgent is an agent as the dispatcher sees it now.
type LiveAgent struct {
	signalbox.Agent
	Up      bool
	Held    bool   // offers are withheld: it said busy, or is not yet known to be free
	Message string // why it is down or held
	// DownSince is since when it is not up, and StrandAt when its session tasks are
	// dealt with (Strand). Zero while it is up, or where another director counts.
	DownSince, StrandAt time.Time
	Closed              *AgentClosed // it failed in a way that speaks of itself; nil: it did not
	// BackedOff says that it is offered nothing for a while, no isolated
	// execution either: it failed.
	BackedOff bool
	InUse     int // slots
	// The bypass: how many isolated executions it offers and runs.
	IsolatedSlots, IsolatedInUse int
	// Sessions says that it lists its conversations and begins one under the
	// id it is given; Terminal that it offers terminals.
	Sessions, Terminal bool
	TaskEnv            []string // names of variables that others than admins may set
	Steps              *Steps   // of its runs, of kind llm; nil: it tells of none
	LastHeard          time.Time
	LastProgress       time.Time
	// Progress is when each of several tasks printed anything, by id; zero: not
	// yet. nil for an agent that runs one at most.
	Progress map[string]time.Time
	// Notes are the troubles that it tells of, of tasks that it runs, by id, with
	// the values of their env hidden.
	Notes map[string]string
}

// Steps is what an agent tells of the steps of its runs: how many tool calls of
// one run, and what became of the calls since it started.
type Steps struct {
	Limit          int
	Calls          map[string]int64 // by outcome
	Queued, Exempt int64            // of these
}

// AgentClosed says why an agent is given nothing for a while.
type AgentClosed struct {
	Reason   string
	Failures int       // in a row
	Since    time.Time // the first of them
	RetryAt  time.Time // it is tried with one task then; zero: the pause is over, and the next task tries it
}

// String is the reason for people.
func (c *AgentClosed) String() string {
	next := "its pause is over, and one task tries it"
	if !c.RetryAt.IsZero() {
		next = "tried again with one task from " + c.RetryAt.UTC().Format("15:04:05 MST")
	}
	return fmt.Sprintf("closed after %d failures in a row, %s: %s", c.Failures, next, c.Reason)
}

// Live is what the dispatcher knows about agents; Why, ETA and the calls that
// want an agent at once need it.
type Live interface {
	Agents() []LiveAgent
	LiveAgent(name string) (a LiveAgent, known bool)
}

type noAgents struct{}

func (noAgents) Agents() []LiveAgent                { return nil }
func (noAgents) LiveAgent(string) (LiveAgent, bool) { return LiveAgent{}, false }

// SetLive tells the engine who knows the agents. Call it before the engine is
// used by others.
func (e *Engine) SetLive(l Live) { e.live = l }

// SetCalls tells the engine who knows the tool calls of executions that wait or are
// under way. Call it before the engine is used by others.
func (e *Engine) SetCalls(inCall func(execution string) bool) { e.calls = inCall }

// AddLive tells the engine who knows more agents: the director's own executor.
// Call it after SetLive and before the engine is used by others.
func (e *Engine) AddLive(l Live) {
	all, several := e.live.(lives)
	if !several {
		all = lives{e.live}
	}
	e.live = append(all, l)
}

// lives are several who know agents, each others.
type lives []Live

func (l lives) Agents() []LiveAgent {
	each := make([][]LiveAgent, len(l))
	for i := range l {
		each[i] = l[i].Agents()
	}
	return slices.Concat(each...)
}

func (l lives) LiveAgent(name string) (a LiveAgent, known bool) {
	for _, some := range l {
		if a, known = some.LiveAgent(name); known {
			break
		}
	}
	return a, known
}

// LiveAgents returns the agents as the dispatcher sees them now.
func (e *Engine) LiveAgents() []LiveAgent { return e.live.Agents() }

// OthersMayTake reports whether an agent beside that one is up, not closed, and
// serves a queue.
func (e *Engine) OthersMayTake(agent, queue string) bool {
	return slices.ContainsFunc(e.LiveAgents(), func(o LiveAgent) bool {
		return o.Name != agent && o.Up && o.Closed == nil && o.Serves(queue)
	})
}

// LiveAgent returns an agent as the dispatcher sees it now.
func (e *Engine) LiveAgent(name string) (a LiveAgent, known bool) { return e.live.LiveAgent(name) }

// apply brings event ev to the task with this id. It begins with row when the
// caller has it, which saves a read, and reads the row anew when it changed.
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
		change, err := signalbox.Next(before, ev)
		if err != nil {
			return before, err
		}
		if change.Task == before && change.Slot == signalbox.SlotKeep && change.Result == nil && !change.Session {
			return before, nil // it said what was known already
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
			e.book.bound(after.SessionID, after.Agent)
		}
		e.publish(before.State, after, change.Entry)
		return after, nil
	}
}

// publish tells everyone who wants to know of a durable change.
func (e *Engine) publish(from signalbox.State, t signalbox.Task, entry signalbox.Entry) {
	if t.State == signalbox.Completed && entry.Kind == signalbox.EventFinish {
		e.runs.add(t.Agent, t.EndedAt.Sub(t.StartedAt))
	}
	e.publishTraced(from, t, entry, "")
}

func (e *Engine) publishTraced(from signalbox.State, t signalbox.Task, entry signalbox.Entry, trace string) {
	if !e.following.Load() {
		e.book.changed(&t)
	}
	e.logChange(t, entry)
	e.hub.publish(&Applied{From: from, Task: t, Kind: entry.Kind, By: entry.By, Trace: trace})
}
