package push

import (
	"time"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/api"
	"github.com/signalbox-ai/signalbox/internal/engine"
	"github.com/signalbox-ai/signalbox/internal/execution"
)

// lane is what the dispatcher knows of one agent. All fields but name, wake
// and stop are guarded by Dispatcher.mu.
type lane struct {
	name string
	wake execution.Signal // something may be there for it
	stop func()           // ends its goroutines

	row    signalbox.Agent // with what the agent says of itself
	stored signalbox.Agent // the row as it is stored
	conn   *conn

	presence execution.Presence
	failures int // probes that failed in a row
	status   api.AgentStatus
	offers   availability
	// epoch counts the events after which an older status says nothing about
	// whether the agent is free: a run that began or left, a refusal.
	epoch int64
	// stale asks for a fresh status though the agent is heard of anyway.
	stale bool
	// term is the time in which this director dispatches to it; nil where
	// another one does.
	term         *term
	removed      bool // its agent is no longer known; it goes with its last run
	drained      bool // its own queue is paused: it is offered nothing until a queue is resumed
	open         bool // it is in Dispatcher.open
	lastProgress time.Time
	health       execution.Health

	runs     map[string]*run // by task id, isolated ones too
	isolated int             // how many of them are
	ending   int             // how many have a slot that may be claimed already
	withheld []withheld
	earlier  []string // what a plain agent called the runs that left
	signals  []string // queues it was woken for and has not looked at yet
	probing  execution.Signal

	isolatedOffers isolatedOffers

	conversations conversations // whether its list of them is to be asked for

	orphans int // executions that were taken away and are followed to their end
	told    execution.Shown
	upAgain chan struct{} // closed when it comes up or goes for good; nil while nobody waits
}

// inUse counts the slots that are taken, those for isolated executions apart.
func (l *lane) inUse() int { return len(l.runs) - l.isolated + l.withheldSlots(false) }

func (l *lane) withheldSlots(isolated bool) (n int) {
	for _, w := range l.withheld {
		if signalbox.Isolated(w.Slot.Slot) == isolated {
			n++
		}
	}
	return n
}

// put adds a run. One of the same task that is about to leave gives way.
func (l *lane) put(r *run) {
	if before := l.runs[r.taskID]; before != nil {
		l.take(before)
	}
	l.runs[r.taskID] = r
	if r.isolated {
		l.isolated++
		return
	}
	l.epoch++
}

// take removes a run, if it is still there.
func (l *lane) take(r *run) {
	if l.runs[r.taskID] != r {
		return
	}
	delete(l.runs, r.taskID)
	l.end(r, false)
	if r.isolated {
		l.isolated--
		return
	}
	l.epoch++
}

// laneState is what keeps an agent from being offered tasks: the first that does.
type laneState int

const (
	laneRemoved   laneState = iota // nobody knows the agent any more
	laneElsewhere                  // another director dispatches to it
	laneAdopting                   // what was in flight there is being taken up
	laneDown                       // it is not there
	laneHeld                       // it is not free, by its own word
	laneDrained                    // its own queue is paused, until a queue is resumed
	laneOpen                       // nothing, but the slots that it has
)

func (l *lane) state() laneState {
	switch {
	case l.removed:
		return laneRemoved
	case l.term == nil:
		return laneElsewhere
	case !l.term.ready:
		return laneAdopting
	case !l.presence.Up():
		return laneDown
	case l.offers.withheld():
		return laneHeld
	case l.drained:
		return laneDrained
	}
	return laneOpen
}

// held reports whether offers are withheld from it here.
func (l *lane) held() bool { return l.ours() && l.offers.withheld() }

// end says whether the slot of a run may be claimed though the run is not over
// here: its end is on the way into the store.
func (l *lane) end(r *run, ending bool) {
	if r.isolated || r.ending == ending {
		return
	}
	r.ending = ending
	if ending {
		l.ending++
	} else {
		l.ending--
	}
}

// free is how many tasks it could be offered now.
func (l *lane) free() int {
	if l.state() != laneOpen {
		return 0
	}
	return l.health.Room(max(0, l.row.Slots-l.inUse()+l.ending))
}

// heard notes that the agent answered something. It reports whether that is
// news.
func (l *lane) heard(now time.Time) (cameUp bool) {
	l.failures = 0
	if !l.presence.Heard(now) {
		return false
	}
	l.conversations.want()
	l.isolatedOffers.look()
	l.returned()
	return true
}

// returned tells those who wait for the agent that it is up, or that it is no
// longer worth to wait.
func (l *lane) returned() {
	if l.upAgain != nil {
		close(l.upAgain)
		l.upAgain = nil
	}
}

// learn takes in what the agent says of itself.
func (l *lane) learn(s api.AgentStatus) {
	s.Slots = min(s.Slots, signalbox.MaxAgentSlots)
	s.IsolatedSlots = min(max(0, s.IsolatedSlots), signalbox.MaxAgentSlots)
	l.status = s
	l.works(s)
	l.row.Fencing = s.Fencing
	l.row.Kind = knownKind(l.row.Kind, s)
	if s.Slots > 0 {
		l.row.Slots = s.Slots
	}
}

// knownKind is the kind of the row, or, where nobody said one, the agent's own
// word.
func knownKind(row string, s api.AgentStatus) string {
	if row == signalbox.KindUnknown && signalbox.ValidName(s.AgentKind) {
		return s.AgentKind
	}
	return row
}

// currentTasks lists what an agent says it runs: a plain one names one task.
func currentTasks(s *api.AgentStatus) []api.AgentCurrentTask {
	if len(s.CurrentTasks) == 0 && s.CurrentTask != nil {
		return []api.AgentCurrentTask{*s.CurrentTask}
	}
	return s.CurrentTasks
}

// hear notes that the agent spoke of these tasks: it is not silent about them.
func (l *lane) hear(tasks []api.AgentCurrentTask, now, wall time.Time) {
	for _, c := range tasks {
		if c.LastProgressAt != nil && c.LastProgressAt.After(l.lastProgress) {
			l.lastProgress = *c.LastProgressAt
		}
		if r := l.runOf(c); r != nil {
			r.Heard = now
			r.progressSaid(c, now, wall)
			r.Tell(c.Note)
		}
	}
}

// says is how many executions it runs by its own word.
func (l *lane) says() (slots, isolated int) {
	for _, c := range currentTasks(&l.status) {
		if c.Isolated {
			isolated++
		} else {
			slots++
		}
	}
	if slots+isolated == 0 && l.status.State == "working" {
		slots = 1 // it does not say what
	}
	return min(slots, l.row.Slots), isolated
}

func (l *lane) shown() execution.Shown {
	return execution.Show(execution.Shown{
		Slots: l.row.Slots, Isolated: l.status.IsolatedSlots, Kind: l.row.Kind, Held: l.held(), Message: l.offers.why,
		Fencing: l.row.Fencing, Terminal: l.status.Terminal, Removed: l.removed,
	}, &l.presence, &l.health, l.runs, l.lastProgress)
}

// live is the lane as the engine sees it.
func (d *Dispatcher) live(l *lane) engine.LiveAgent {
	a := engine.LiveAgent{
		Agent: l.row, Held: l.held(), InUse: l.inUse(),
		IsolatedSlots: l.status.IsolatedSlots, IsolatedInUse: l.isolatedInUse(),
		Sessions: l.status.Sessions, Terminal: l.status.Terminal, TaskEnv: l.status.TaskEnv, Steps: execution.StepsOf(l.status.Steps),
		LastHeard: l.presence.LastHeard(), LastProgress: l.lastProgress,
	}
	if a.Held {
		a.Message = l.offers.why
	}
	execution.View(&a, &l.presence, &l.health, d.engine.Now(), d.opts.Monotonic(), d.opts.SessionGrace)
	execution.ViewRuns(&a, l.runs, len(l.runs) > 1)
	if l.term == nil { // another director has its runs, and counts
		a.InUse, a.IsolatedInUse = l.says()
		a.DownSince, a.StrandAt = time.Time{}, time.Time{}
	}
	return a
}
