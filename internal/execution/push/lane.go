package push

import (
	"time"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/api"
	"github.com/signalbox-ai/signalbox/internal/engine"
	"github.com/signalbox-ai/signalbox/internal/execution"
)

// lane is what the dispatcher knows of one agent, guarded by Mu except Name, Wake and stop.
type lane struct {
	execution.Lane[*run]
	stop func() // stops its goroutines

	stored signalbox.Agent // the row as it is stored
	conn   *conn

	failures int // failed probes in a row
	status   api.AgentStatus
	told     bool // it has reported its status at this address
	offers   availability
	// epoch counts events that outdate an earlier status with regard to whether the agent
	// is free: a run that started or ended, a refusal.
	epoch int64
	// stale requests a fresh status although the agent is heard from.
	stale bool
	// term is set while this director dispatches to the agent, else nil.
	term *term

	ending   int // number of runs whose slot may already be claimed
	withheld []withheld
	endedIDs []string // ids that a plain agent gave to runs that have ended here
	probing  execution.Signal

	sessionSync sessionSync // whether its list of sessions is to be read

	orphans int           // number of executions that were taken away and are followed to their end
	upAgain chan struct{} // closed when it comes up or is removed; nil while nobody waits
}

// inUse counts its slots, or isolated slots, that are taken. Withheld slots count.
func (l *lane) inUse(isolated bool) int {
	n := l.InUse(isolated)
	for _, w := range l.withheld {
		if signalbox.Isolated(w.Slot.Slot) == isolated {
			n++
		}
	}
	return n
}

// put adds a run. It replaces one of the same task that is about to end.
func (l *lane) put(r *run) {
	if before := l.Runs[r.ID]; before != nil {
		l.remove(before)
	}
	l.PutRun(r)
	if !r.Isolated {
		l.epoch++
	}
}

// remove removes a run, if it is still there.
func (l *lane) remove(r *run) {
	if !l.RemoveRun(&r.Run) || r.Isolated {
		return
	}
	l.setEnding(r, false)
	l.epoch++
}

// Room implements execution.Agent.
func (l *lane) Room(isolated bool) int {
	switch {
	case !l.ours(), isolated && l.offers.lostData():
		return 0
	case isolated:
		return l.Isolated - l.inUse(true)
	}
	return l.Row.Slots - l.inUse(false) + l.ending
}

// ClaimsPerWake implements execution.Agent: it claims until it is full.
func (l *lane) ClaimsPerWake() int { return signalbox.MaxAgentSlots }

// Withheld implements execution.Agent. It withholds until the agent has reported its status: before that its
// account and its highest fence are unknown, although an answer about a run may have brought it up.
func (l *lane) Withheld() string {
	switch {
	case l.Full != "":
		return l.Full
	case l.ours() && l.offers.withheld():
		return l.offers.why
	case l.ours() && !l.told:
		return "its status is being read"
	}
	return ""
}

// setEnding says whether the slot of a run may be claimed although its end is still being
// stored.
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

// markHeard records that the agent answered, and reports whether it came up.
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

// notifyUp wakes those who wait for the agent to come up or be removed.
func (l *lane) notifyUp() {
	if l.upAgain != nil {
		close(l.upAgain)
		l.upAgain = nil
	}
}

// applyStatus records what the agent reports about itself.
func (l *lane) applyStatus(s api.AgentStatus) {
	s.Slots = min(s.Slots, signalbox.MaxAgentSlots)
	s.IsolatedSlots = min(max(0, s.IsolatedSlots), signalbox.MaxAgentSlots)
	l.status, l.told = s, true
	l.Isolated, l.HighestFence, l.Terminal = s.IsolatedSlots, s.HighestFence, s.Terminal
	if s.State == "working" {
		l.Health.AtWork()
	}
	l.Row.Fencing = s.Fencing
	l.Row.Kind = knownKind(l.Row.Kind, s)
	if s.Slots > 0 {
		l.Row.Slots = s.Slots
	}
	l.ReportFolder(s.WorkDir, s.Workspace, s.FolderID)
	l.ReportFull(s.Full)
}

// knownKind returns the kind of the row or, if that is unknown, the one that the agent
// reports.
func knownKind(row string, s api.AgentStatus) string {
	if row == signalbox.KindUnknown && signalbox.ValidName(s.AgentKind) {
		return s.AgentKind
	}
	return row
}

// currentTasks lists what an agent says it runs; a plain agent names one task.
func currentTasks(s *api.AgentStatus) []api.AgentCurrentTask {
	if len(s.CurrentTasks) == 0 && s.CurrentTask != nil {
		return []api.AgentCurrentTask{*s.CurrentTask}
	}
	return s.CurrentTasks
}

// recordTasks records that the agent reported on these tasks.
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

// reportedRuns is how many executions the agent says it runs.
func (l *lane) reportedRuns() (slots, isolated int) {
	for _, c := range currentTasks(&l.status) {
		if c.Isolated {
			isolated++
		} else {
			slots++
		}
	}
	if slots+isolated == 0 && l.status.State == "working" {
		slots = 1 // it does not name it
	}
	return min(slots, l.Row.Slots), isolated
}

// Describe implements execution.Agent.
func (l *lane) Describe(a *engine.LiveAgent) {
	a.TaskChecks, a.Landing = signalbox.TaskChecks(l.status.TaskChecks), l.status.Landing
	a.Sessions, a.TaskEnv, a.Steps = l.status.Sessions, l.status.TaskEnv, execution.StepsOf(l.status.Steps)
	a.InUse, a.IsolatedInUse = l.inUse(false), l.inUse(true)
	if l.term == nil { // another director follows its runs
		a.InUse, a.IsolatedInUse = l.reportedRuns()
		a.DownSince, a.StrandedAt = time.Time{}, time.Time{}
	}
}
