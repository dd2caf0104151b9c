package pull

import (
	"cmp"
	"container/list"
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/api"
	"github.com/signalbox-ai/signalbox/internal/engine"
	"github.com/signalbox-ai/signalbox/internal/execution"
)

// Defaults.
const (
	// MaxWait is how long a claim waits at most.
	MaxWait = 30 * time.Second
	// DefaultSilence is after how long an agent that said nothing is down: it
	// asks again at least every MaxWait, or a while later where an answer got lost.
	DefaultSilence = 2 * MaxWait
	DefaultTick    = time.Second
)

// Options configures Lanes. Zero fields take the defaults.
type Options struct {
	// Holds says for which agents this director decides what needs no word of
	// theirs: that they are lost, or gone for too long. nil: for all.
	Holds        func(agent string) bool
	SessionGrace time.Duration // absence of an agent before its session tasks are dealt with; default as of execution
	StallLimit   time.Duration // stops a run that made no progress for so long, as of push
	RunGrace     time.Duration // how long a run may overstay its timeout; default as of execution
	Silence      time.Duration // of an agent, after which it is down
	Tick         time.Duration // the backstop behind the events
	Traces       execution.Traces
	// Turn is called where something here goes on after it has waited, before it
	// looks at anything, as push.Options.Turn is. nil: all go on at once.
	Turn      func(what, of string, fence int64)
	Log       *slog.Logger
	Monotonic func() time.Time // the clock by which silence is measured
}

func (o *Options) setDefaults() {
	o.SessionGrace = cmp.Or(o.SessionGrace, execution.DefaultSessionGrace)
	o.RunGrace = cmp.Or(o.RunGrace, execution.DefaultRunGrace)
	o.Silence = cmp.Or(o.Silence, DefaultSilence)
	o.Tick = cmp.Or(o.Tick, DefaultTick)
	if o.Holds == nil {
		o.Holds = func(string) bool { return true }
	}
	o.Log = cmp.Or(o.Log, slog.New(slog.DiscardHandler))
	if o.Monotonic == nil {
		o.Monotonic = time.Now
	}
}

// Lanes are the agents that pull. It implements engine.Live.
type Lanes struct {
	engine *engine.Engine
	opts   Options
	log    *slog.Logger
	id     string // of the store; agents compare fences within it

	ctx    context.Context // of what goes on by itself
	cancel context.CancelFunc
	group  sync.WaitGroup

	maintenance execution.Maintenance
	refresh     *execution.Chore // the list of agents changed
	reload      *execution.Chore // so did what is in flight
	recheck     *execution.Chore // something that no event named may be ready

	loading  sync.Mutex // held while the agents are read; taken before mu
	mu       sync.Mutex
	lanes    map[string]*lane
	runs     map[string]*run // tasks in flight of these agents, by id
	idle     list.List       // *poll: parked and able to take a task, the longest first
	kinds    map[string]*list.List
	voids    []voidMask // of runs that are over here, the oldest first
	unmet    int64      // counts tasks that became ready while nobody was parked for them
	resumed  int64      // counts queues that were resumed
	polls    int64      // counts claims
	draining bool
}

// New returns lanes that do nothing until Start. Call it after the engine's
// SetLive, and before the engine is used by others.
func New(e *engine.Engine, o Options) *Lanes {
	o.setDefaults()
	l := &Lanes{
		engine: e, opts: o, log: o.Log, id: e.Info().ID,
		lanes: map[string]*lane{}, runs: map[string]*run{}, kinds: map[string]*list.List{},
	}
	r := rounds{l: l}
	l.maintenance = execution.Maintenance{Log: l.log, Turn: func() { l.turn("pulls", "", 0) }, Round: r.round}
	l.refresh = l.maintenance.Chore("agents not loaded", l.loadAgents)
	l.reload = l.maintenance.Chore("tasks in flight not read", l.loadRuns)
	l.recheck = l.maintenance.Chore("waiting tasks not counted", l.kickWaiting)
	l.ctx, l.cancel = context.WithCancel(context.Background())
	e.AddLive(l)
	e.Observe(l.applied)
	return l
}

// turn is where something goes on after it has waited (Options.Turn).
func (l *Lanes) turn(what, of string, n int64) {
	if l.opts.Turn != nil {
		l.opts.Turn(what, of, n)
	}
}

// Start takes up what these agents have in hand. An error means that the store
// cannot be read, and nothing was started.
func (l *Lanes) Start(ctx context.Context) error {
	if err := l.loadAgents(ctx); err != nil {
		return err
	}
	if err := l.loadRuns(ctx); err != nil {
		return err
	}
	l.group.Go(func() { l.maintenance.Run(l.ctx, l.opts.Tick) })
	return nil
}

// Drain gives out no more tasks: who asks is told to ask another director.
// What runs is left to its agents, which hand it in where one answers.
func (l *Lanes) Drain() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.draining = true
	for _, a := range l.lanes {
		l.supersede(a)
	}
}

// Stop ends what goes on by itself.
func (l *Lanes) Stop() {
	l.Drain()
	l.cancel()
	l.group.Wait()
}

// lane is what is known of one agent. All is guarded by Lanes.mu.
type lane struct {
	name string
	row  signalbox.Agent // with the slots that the agent said
	said said

	stale    bool // its row may have changed: it is read before the next request
	presence execution.Presence
	at       time.Time // when it was heard, by the clock that all directors go by
	fresh    bool      // heard here since the last Heard
	progress time.Time

	poll    *poll
	runs    map[string]*run  // by task id
	fence   int64            // the highest that it refused ours for
	refused bool             // it said busy to an offer
	barred  string           // why no claim is made for it; "": none was refused
	health  execution.Health // of what it was offered here
	round   int              // of its last pause
	retry   time.Time        // monotonic: when that is over; zero: it was looked at
	drained bool             // its own queue is paused: it is offered nothing until a queue is resumed
	bypass  bool             // something may wait in its bypass queue
	told    execution.Shown
}

// tell tells those who show agents where one is to be shown otherwise; the caller
// holds mu.
func (l *Lanes) tell(a *lane) {
	shown := execution.Show(execution.Shown{
		Slots: a.row.Slots, Isolated: a.said.isolated, Held: a.said.held > 0 && a.refused, Message: a.barred,
	}, &a.presence, &a.health, a.runs, a.progress)
	if shown != a.told {
		a.told = shown
		l.engine.AgentChanged(a.name)
	}
}

// said is what an agent said of itself last.
type said struct {
	slots, isolated, held int
	fence                 int64
	steps                 *api.AgentSteps
}

func (a *lane) inUse(isolated bool) (n int) {
	for _, r := range a.runs {
		if signalbox.Isolated(r.Task.Slot) == isolated {
			n++
		}
	}
	return n
}

// open reports whether the agent could take a task.
func (a *lane) open() bool {
	if a.drained || !a.presence.Up() {
		return false
	}
	free := a.row.Slots - a.inUse(false)
	return free > 0 && !a.stuck(free) && a.health.Room(free) > 0
}

// stuck reports whether what holds slots of the agent from elsewhere keeps it
// from the next task.
func (a *lane) stuck(free int) bool { return a.said.held > 0 && (a.refused || a.said.held >= free) }

// run is a task in flight of such an agent, as it was last seen.
type run struct {
	execution.Run
	learned bool      // its request is known: that is where its timeout and its mask come from
	follows bool      // the tail begins behind the log of an earlier attempt, where there is one
	trace   string    // traceparent for the agent
	inCall  time.Time // monotonic: it waited then for what it asked this director for; zero: not that it is known
	expires time.Time // of its slot, as last read
	renewed bool      // the next change of that is by this director
}

// LiveAgent implements engine.Live.
func (l *Lanes) LiveAgent(name string) (engine.LiveAgent, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	a := l.lanes[name]
	if a == nil {
		return engine.LiveAgent{}, false
	}
	return l.live(a), true
}

// Agents implements engine.Live.
func (l *Lanes) Agents() []engine.LiveAgent {
	l.mu.Lock()
	defer l.mu.Unlock()
	all := make([]engine.LiveAgent, 0, len(l.lanes))
	for _, a := range l.lanes {
		all = append(all, l.live(a))
	}
	return all
}

func (l *Lanes) live(a *lane) engine.LiveAgent {
	free := a.row.Slots - a.inUse(false)
	v := engine.LiveAgent{
		Agent: a.row, InUse: a.inUse(false),
		IsolatedSlots: a.said.isolated, IsolatedInUse: a.inUse(true), Sessions: true, LastHeard: a.at, LastProgress: a.progress,
		Steps: execution.StepsOf(a.said.steps),
	}
	switch {
	case !a.presence.Up():
	case a.barred != "":
		v.Held, v.Message = true, a.barred
	case free > 0 && a.stuck(free):
		v.Held, v.Message = true, "busy with something that is not from this queue"
	}
	execution.View(&v, &a.presence, &a.health, l.engine.Now(), l.opts.Monotonic(), l.opts.SessionGrace)
	execution.ViewRuns(&v, a.runs, a.row.Slots > 1)
	return v
}
