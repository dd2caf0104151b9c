package push

import (
	"github.com/signalbox-ai/signalbox/api"
)

// Whether an agent is free, by its own word.

// hold withholds offers until judge finds the agent free.
func (l *lane) hold(why string) {
	l.held, l.refused, l.forced, l.message = true, true, false, why
	l.epoch++
}

// unhold lets offers go to the agent again.
func (l *lane) unhold() { l.held, l.refused, l.message = false, false, "" }

// judge decides by the agent's own word whether offers are withheld.
func (l *lane) judge(director string) {
	foreign, listed := l.foreign(director)
	switch {
	case l.status.State == "idle":
		l.forced, l.amnesia = false, false
		l.unhold()
	case l.forced:
	case len(foreign) > 0 && (l.refused || len(foreign) >= l.row.Slots-l.inUse()):
		l.held = true
		l.message = "busy with " + foreign[0] + ", which is not from this queue"
	case l.refused && !listed: // working, and it does not say at what: it said busy, so it is until it is idle
	default:
		l.amnesia = false
		l.unhold()
	}
}

// foreign names what the agent runs that is not from here, as far as it
// lists what it runs.
func (l *lane) foreign(director string) (names []string, listed bool) {
	live, unknown := 0, 0 // runs; those whose id at the agent is not known yet: it may list them
	for _, r := range l.runs {
		if r.refused {
			continue
		}
		live++
		if r.agentTask == "" && !r.isolated {
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
		case l.status.Fencing && l.status.Director == director && c.Fence > 0 && !l.amnesia:
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

// runOf returns the run that the agent speaks of.
func (l *lane) runOf(c api.AgentCurrentTask) *run {
	if c.QueueID != "" {
		if r := l.runs[c.QueueID]; r != nil && r.fence == c.Fence {
			return r
		}
		return nil
	}
	for _, r := range l.runs {
		if c.ID != "" && r.agentTask == c.ID {
			return r
		}
	}
	return nil
}

// withholds reports whether a slot is withheld for the task that the agent
// speaks of.
func (l *lane) withholds(c api.AgentCurrentTask) bool {
	for _, w := range l.withheld {
		if w.id == c.ID && c.ID != "" {
			return true
		}
	}
	return false
}
