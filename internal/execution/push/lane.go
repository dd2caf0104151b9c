package push

import (
	"time"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/api"
	"github.com/signalbox-ai/signalbox/internal/engine"
	"github.com/signalbox-ai/signalbox/internal/execution"
)

// lane is what the dispatcher knows of one agent. All fields but name, wake
// and stop are guarded by its Mu.
type lane struct {
	execution.Lane[*run]
	stop func() // ends its goroutines

	stored signalbox.Agent // the row as it is stored
	conn   *conn

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
	term *term

	ending   int // how many runs have a slot that may be claimed already
	withheld []withheld
	endedIDs []string // what a plain agent called the runs that left
	probing  execution.Signal

	sessionSync sessionSync // whether its list of them is to be asked for

	orphans int           // executions that were taken away and are followed to their end
	upAgain chan struct{} // closed when it comes up or goes for good; nil while nobody waits
}

// inUse counts the slots that are taken, or those for isolated executions.
func (l *lane) inUse(isolated bool) int {
	n := l.InUse(isolated)
	for _, w := range l.withheld {
		if signalbox.Isolated(w.Slot.Slot) == isolated {
			n++
		}
	}
	return n
}

// put adds a run. One of the same task that is about to leave gives way.
func (l *lane) put(r *run) {
	if before := l.Runs[r.ID]; before != nil {
		l.remove(before)
	}
	l.PutRun(r)
	if !r.Isolated {
		l.epoch++
	}
}

// take removes a run, if it is still there.
func (l *lane) remove(r *run) {
	if !l.RemoveRun(&r.Run) || r.Isolated {
		return
	}
	l.setEnding(r, false)
	l.epoch++
}

// Room implements a part of execution.Agent.
func (l *lane) Room(isolated bool) int {
	switch {
	case !l.ours(), isolated && l.offers.lostData():
		return 0
	case isolated:
		return l.Isolated - l.inUse(true)
	}
	return l.Row.Slots - l.inUse(false) + l.ending
}

// Takes implements a part of execution.Agent: it claims until it is full.
func (l *lane) ClaimsPerWake() int { return signalbox.MaxAgentSlots }

// Withheld implements a part of execution.Agent.
func (l *lane) Withheld() string {
	if l.ours() && l.offers.withheld() {
		return l.offers.why
	}
	return ""
}

// end says whether the slot of a run may be claimed though the run is not over
// here: its end is on the way into the store.
func (l *lane) setEnding(r *run, ending bool) {
	if r.Isolated || r.ending == ending {
		return
	}
	r.ending = ending
	if ending {
		l.ending++
	} else {
		l.ending--
	}
}

// heard notes that the agent answered something. It reports whether that is
// news.
func (l *lane) markHeard(now time.Time) (cameUp bool) {
	l.failures = 0
	if !l.Presence.Heard(now) {
		return false
	}
	l.sessionSync.request()
	l.Bypass.Check()
	l.notifyUp()
	return true
}

// returned tells those who wait for the agent that it is up, or that it is no
// longer worth to wait.
func (l *lane) notifyUp() {
	if l.upAgain != nil {
		close(l.upAgain)
		l.upAgain = nil
	}
}

// learn takes in what the agent says of itself.
func (l *lane) applyStatus(s api.AgentStatus) {
	s.Slots = min(s.Slots, signalbox.MaxAgentSlots)
	s.IsolatedSlots = min(max(0, s.IsolatedSlots), signalbox.MaxAgentSlots)
	l.status = s
	l.Isolated, l.HighestFence, l.Terminal = s.IsolatedSlots, s.HighestFence, s.Terminal
	if s.State == "working" {
		l.Health.AtWork()
	}
	l.Row.Fencing = s.Fencing
	l.Row.Kind = knownKind(l.Row.Kind, s)
	if s.Slots > 0 {
		l.Row.Slots = s.Slots
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
func (l *lane) recordTasks(tasks []api.AgentCurrentTask, now, wall time.Time) {
	for _, c := range tasks {
		if c.LastProgressAt != nil && c.LastProgressAt.After(l.Progress) {
			l.Progress = *c.LastProgressAt
		}
		if r := l.runOf(c); r != nil {
			r.Heard = now
			r.recordProgress(c, now, wall)
			r.SetNote(c.Note)
		}
	}
}

// says is how many executions it runs by its own word.
func (l *lane) reportedRuns() (slots, isolated int) {
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
	return min(slots, l.Row.Slots), isolated
}

// Show implements a part of execution.Agent.
func (l *lane) Describe(a *engine.LiveAgent) {
	a.Sessions, a.TaskEnv, a.Steps = l.status.Sessions, l.status.TaskEnv, execution.StepsOf(l.status.Steps)
	a.InUse, a.IsolatedInUse = l.inUse(false), l.inUse(true)
	if l.term == nil { // another director has its runs, and counts
		a.InUse, a.IsolatedInUse = l.reportedRuns()
		a.DownSince, a.StrandedAt = time.Time{}, time.Time{}
	}
}
