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
	// MaxWait is the longest wait of a claim.
	MaxWait = 30 * time.Second
	// DefaultSilence is after how much silence an agent is down: it asks again at least
	// every MaxWait, or a bit later if an answer got lost.
	DefaultSilence = 2 * MaxWait
)

// Options configures Lanes. Zero fields take the defaults. Holds says for which agents this
// director decides without their report: that a run is lost, or that they have been gone
// too long.
type Options struct {
	execution.Options
	Silence time.Duration // after which an agent is down
}

type registry = execution.Registry[*lane, *run]

// Lanes are the pull agents. It implements engine.Live.
type Lanes struct {
	registry // its Mu guards what follows
	opts     Options

	refresh *execution.Chore // the list of agents changed
	reload  *execution.Chore // the tasks in flight changed

	loading    sync.Mutex  // held while the agents are read; taken before Mu
	endedMasks []endedMask // of runs that have ended here, oldest first
	polls      int64       // counts claims
}

// New returns Lanes that do nothing until Start. Call it after the engine's SetLive, and
// before the engine is used.
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

// Start reads what these agents have in flight. On an error the store cannot be read, and
// nothing was started.
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

// Drain hands out no more tasks: agents are told to ask another director. Running tasks are
// left to their agents, which report to whichever director answers.
func (l *Lanes) Drain() {
	l.Mu.Lock()
	defer l.Mu.Unlock()
	l.Draining = true
	for _, a := range l.Order {
		l.supersede(a)
	}
}

// Stop stops all goroutines.
func (l *Lanes) Stop() {
	l.Drain()
	l.Close()
}

// lane is what is known of one agent, guarded by Mu.
type lane struct {
	execution.Lane[*run]
	reported report

	stale     bool      // its row may have changed: read it before the next request
	lastHeard time.Time // by the clock shared by all directors
	heardHere bool      // heard from here since the last call of Heard

	poll         *poll
	refused      bool   // it said busy to an offer
	claimRefused string // why its last claim failed; "": it did not
}

// report is what an agent last reported about itself.
type report struct {
	slots, isolated, held int
	fence                 int64
	steps                 *api.AgentSteps
}

func (a *lane) setReported(s report) {
	a.reported, a.Row.Slots, a.Isolated, a.HighestFence = s, s.slots, s.isolated, s.fence
}

// Room implements execution.Agent.
func (a *lane) Room(isolated bool) int {
	if isolated {
		return a.Isolated - a.InUse(true)
	}
	return a.Row.Slots - a.InUse(false)
}

// ClaimsPerWake implements execution.Agent: a claim returns one task.
func (a *lane) ClaimsPerWake() int {
	if a.poll == nil {
		return 0
	}
	return 1
}

// Withheld implements execution.Agent.
func (a *lane) Withheld() string {
	free := a.Room(false)
	switch {
	case a.claimRefused != "":
		return a.claimRefused
	case a.Full != "":
		return a.Full
	case free > 0 && a.reported.held > 0 && (a.refused || a.reported.held >= free):
		return "busy with something that is not from this queue"
	}
	return ""
}

// Describe implements execution.Agent.
func (a *lane) Describe(v *engine.LiveAgent) {
	v.Landing = true // an agent of an earlier release refuses the field itself
	v.Sessions, v.Steps, v.LastHeard = true, execution.StepsOf(a.reported.steps), a.lastHeard
}

// run is a task in flight of a pull agent, as last seen.
type run struct {
	execution.Run
	requestLoaded bool      // timeout and mask are known
	logContinued  bool      // the log of an earlier attempt, if any, has been prepended
	trace         string    // traceparent for the agent
	inCall        time.Time // monotonic: when it was last found waiting for this director; zero: never
	expires       time.Time // of its slot, as last read
}
