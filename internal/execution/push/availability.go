package push

import (
	"github.com/signalbox-ai/signalbox/api"
)

// availability says whether an agent is offered tasks, by its own report.
//
//	free ─runs others' tasks, in all slots─▶ occupied ─▶ free
//	  │ says busy to an offer
//	  ▼
//	refusing ─idle, or runs only our tasks─▶ free
//	  │ released by someone
//	  ▼
//	forced ─idle─▶ free; its next refusal makes it refusing
//
//	the store lost data: dataLoss, until it is idle, runs only our tasks, or is released
type availability struct {
	state availabilityState
	why   string // why nothing is offered
}

type availabilityState int

const (
	free     availabilityState = iota
	occupied                   // it runs tasks that are not from here
	refusing                   // it said busy to an offer, whatever its status says
	forced                     // someone released it: what it runs does not count
	dataLoss                   // the store lost data: only known tasks count as ours
)

// withheld reports whether nothing is offered to it.
func (a *availability) withheld() bool {
	return a.state == occupied || a.state == refusing || a.state == dataLoss
}

// lostData reports whether it must first report what it runs.
func (a *availability) lostData() bool { return a.state == dataLoss }

// refused: it said busy to an offer, or cannot be offered anything.
func (a *availability) refused(why string) {
	if a.state != dataLoss {
		a.state = refusing
	}
	a.why = why
}

func (a *availability) onDataLoss() { a.state, a.why = dataLoss, reasonDataLoss }

// force allows offers, whatever it runs.
func (a *availability) force() { *a = availability{state: forced} }

// handedOver: another director now dispatches to it.
func (a *availability) handedOver() {
	if a.state != dataLoss {
		*a = availability{}
	}
}

// idle: it runs nothing.
func (a *availability) idle() { *a = availability{} }

// working: it runs something. foreign are its tasks that are not from here, listed says whether it lists its
// tasks at all, full whether foreign tasks leave no slot free.
func (a *availability) working(foreign []string, listed, full bool) {
	insists := a.state == refusing || a.state == dataLoss
	switch {
	case a.state == forced:
	case len(foreign) > 0 && (insists || full):
		if !insists {
			a.state = occupied
		}
		a.why = "busy with " + foreign[0] + ", which is not from this queue"
	case insists && !listed: // it does not list its tasks: after a busy it stays busy until it is idle
	default:
		*a = availability{}
	}
}

// hold withholds offers until updateAvailability finds the agent free.
func (l *lane) hold(why string) {
	l.offers.refused(why)
	l.epoch++
}

// updateAvailability decides by the agent's status whether offers are withheld.
func (l *lane) updateAvailability(director string) {
	if l.status.State == "idle" {
		l.offers.idle()
		return
	}
	foreign, listed := l.foreign(director)
	l.offers.working(foreign, listed, len(foreign) >= l.Row.Slots-l.inUse(false))
}

// foreign names the tasks of the agent that are not from here; listed says whether it lists
// its tasks.
func (l *lane) foreign(director string) (names []string, listed bool) {
	live, unknown := 0, 0 // runs, and those whose id at the agent is not known yet
	for _, r := range l.Runs {
		if r.refused {
			continue
		}
		live++
		if r.agentTask == "" && !r.Isolated {
			unknown++
		}
	}
	tasks := currentTasks(&l.status)
	if len(tasks) == 0 {
		if live == 0 && len(l.withheld) == 0 {
			names = append(names, "something")
		}
		return names, false
	}
	for _, c := range tasks {
		switch {
		case c.Isolated || l.runOf(c) != nil || l.withholds(c):
		case l.status.Fencing && l.status.Director == director && c.Fence > 0 && !l.offers.lostData():
			// It was lost or released here. The agent stops it, with proof,
			// before it accepts the next fence.
		case unknown > 0 && !l.status.Fencing:
			unknown--
		default:
			names = append(names, c.ID)
		}
	}
	return names, true
}

// runOf returns the run that the agent's entry is about.
func (l *lane) runOf(c api.AgentCurrentTask) *run {
	if c.QueueID != "" {
		if r := l.Runs[c.QueueID]; r != nil && r.Fence == c.Fence {
			return r
		}
		return nil
	}
	for _, r := range l.Runs {
		if c.ID != "" && r.agentTask == c.ID {
			return r
		}
	}
	return nil
}

// withholds reports whether a slot is withheld for the task of an entry.
func (l *lane) withholds(c api.AgentCurrentTask) bool {
	for _, w := range l.withheld {
		if w.id == c.ID && c.ID != "" {
			return true
		}
	}
	return false
}
