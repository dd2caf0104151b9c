package pull

import (
	"cmp"
	"context"
	"sync"
	"time"

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
)

// Options configures Lanes. Zero fields take the defaults.
type Options struct {
	// Options are those of all transports. Holds says for which agents this director
	// decides what needs no word of theirs: that they are lost, or gone for too long.
	execution.Options
	Silence time.Duration // of an agent, after which it is down
}

type registry = execution.Registry[*lane, *run]

// Lanes are the agents that pull. It implements engine.Live.
type Lanes struct {
	registry // its Mu guards what follows
	opts     Options

	refresh *execution.Chore // the list of agents changed
	reload  *execution.Chore // so did what is in flight

	loading    sync.Mutex  // held while the agents are read; taken before Mu
	endedMasks []endedMask // of runs that are over here, the oldest first
	polls      int64       // counts claims
}

// New returns lanes that do nothing until Start. Call it after the engine's
// SetLive, and before the engine is used by others.
func New(e *engine.Engine, o Options) *Lanes {
	l := &Lanes{opts: o}
	l.opts.Silence = cmp.Or(o.Silence, DefaultSilence)
	l.opts.Options = l.Open(e, o.Options, "pulls")
	l.ShouldClaim = l.anyWaiting
	r := rounds{l: l}
	l.Maintenance.Round = r.round
	l.refresh = l.Maintenance.Chore("agents not loaded", l.loadAgents)
	l.reload = l.Maintenance.Chore("tasks in flight not read", l.loadRuns)
	l.Recheck = l.Maintenance.Chore("waiting tasks not counted", l.WakeForWaiting)
	e.AddLive(l)
	e.Observe(l.applied)
	return l
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
	l.Group.Go(func() { l.Maintenance.Run(l.Ctx, l.opts.Tick) })
	return nil
}

// Drain gives out no more tasks: who asks is told to ask another director.
// What runs is left to its agents, which hand it in where one answers.
func (l *Lanes) Drain() {
	l.Mu.Lock()
	defer l.Mu.Unlock()
	l.Draining = true
	for _, a := range l.Order {
		l.supersede(a)
	}
}

// Stop ends what goes on by itself.
func (l *Lanes) Stop() {
	l.Drain()
	l.Close()
}

// lane is what is known of one agent. All is guarded by Mu.
type lane struct {
	execution.Lane[*run]
	reported report

	stale     bool      // its row may have changed: it is read before the next request
	lastHeard time.Time // when it was heard, by the clock that all directors go by
	heardHere bool      // heard here since the last Heard

	poll         *poll
	refused      bool   // it said busy to an offer
	claimRefused string // why no claim was made for it when it asked last; "": none was refused
}

// said is what an agent said of itself last.
type report struct {
	slots, isolated, held int
	fence                 int64
	steps                 *api.AgentSteps
}

// says takes in what the agent says of itself.
func (a *lane) setReported(s report) {
	a.reported, a.Row.Slots, a.Isolated, a.HighestFence = s, s.slots, s.isolated, s.fence
}

// Room implements a part of execution.Agent.
func (a *lane) Room(isolated bool) int {
	if isolated {
		return a.Isolated - a.InUse(true)
	}
	return a.Row.Slots - a.InUse(false)
}

// Takes implements a part of execution.Agent: a claim is answered with one task.
func (a *lane) ClaimsPerWake() int {
	if a.poll == nil {
		return 0
	}
	return 1
}

// Withheld implements a part of execution.Agent.
func (a *lane) Withheld() string {
	free := a.Room(false)
	switch {
	case a.claimRefused != "":
		return a.claimRefused
	case free > 0 && a.reported.held > 0 && (a.refused || a.reported.held >= free):
		return "busy with something that is not from this queue"
	}
	return ""
}

// Show implements a part of execution.Agent.
func (a *lane) Describe(v *engine.LiveAgent) {
	v.Sessions, v.Steps, v.LastHeard = true, execution.StepsOf(a.reported.steps), a.lastHeard
}

// run is a task in flight of such an agent, as it was last seen.
type run struct {
	execution.Run
	requestLoaded bool      // its request is known: that is where its timeout and its mask come from
	logContinued  bool      // the tail begins behind the log of an earlier attempt, where there is one
	trace         string    // traceparent for the agent
	inCall        time.Time // monotonic: it waited then for what it asked this director for; zero: not that it is known
	expires       time.Time // of its slot, as last read
}
