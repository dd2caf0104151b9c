package dispatch

import (
	"fmt"
	"time"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/api"
	"github.com/signalbox-ai/signalbox/internal/engine"
)

// lane is what the dispatcher knows of one agent. All fields but name, wake
// and stop are guarded by Dispatcher.mu.
type lane struct {
	name string
	wake chan struct{} // capacity 1: something may be there for it
	stop func()        // ends its goroutines

	row  signalbox.Agent
	conn *conn

	up       bool
	failures int    // probes that failed in a row
	message  string // why it is down or held
	status   api.AgentStatus

	// held keeps offers from an agent that said busy, or runs something that
	// did not come from here, until it reports idle.
	held bool

	// lastHeard carries a monotonic reading; wall clock jumps do not matter.
	lastHeard    time.Time
	lastProgress time.Time
	downSince    time.Time
	everUp       bool

	runs     map[string]*run // by task id
	withheld []signalbox.Slot
	signals  int // wake-ups that it has not answered yet
	probing  chan struct{}
}

// inUse counts the slots that are taken.
func (l *lane) inUse() int { return len(l.runs) + len(l.withheld) }

// free is how many tasks it could be offered now.
func (l *lane) free() int {
	if !l.up || l.held {
		return 0
	}
	return max(0, l.row.Slots-l.inUse())
}

// heard notes that the agent answered something. It reports whether that is
// news.
func (l *lane) heard(now time.Time) (cameUp bool) {
	l.lastHeard = now
	l.failures = 0
	cameUp = !l.up
	if cameUp {
		l.up, l.everUp = true, true
		if !l.held {
			l.message = ""
		}
	}
	return cameUp
}

// gone marks the agent down. It reports whether that is news.
func (l *lane) gone(now time.Time, why string) (wentDown bool) {
	wentDown = l.up
	l.up, l.message = false, why
	if wentDown || l.downSince.IsZero() {
		l.downSince = now
	}
	return wentDown
}

// learn takes in what the agent says of itself.
func (l *lane) learn(s api.AgentStatus, director string) {
	l.status = s
	l.row.Fencing = s.Fencing
	if s.Slots > 0 {
		l.row.Slots = min(s.Slots, signalbox.MaxAgentSlots)
	}
	for _, c := range s.CurrentTasks {
		if c.LastProgressAt != nil && c.LastProgressAt.After(l.lastProgress) {
			l.lastProgress = *c.LastProgressAt
		}
	}
	l.judge(director)
}

// judge decides by the agent's own word whether offers are withheld.
func (l *lane) judge(director string) {
	s := l.status
	if s.State == "idle" || len(l.runs) > 0 {
		l.held, l.message = false, ""
		return
	}
	if s.Fencing && ours(s, director) {
		// What it still runs was lost or released here. It stops that, with
		// proof, before it accepts the next fence.
		l.held, l.message = false, ""
		return
	}
	l.held = true
	l.message = "busy with something that is not from this queue"
	if s.CurrentTask != nil {
		l.message = fmt.Sprintf("busy with %s, which is not from this queue", s.CurrentTask.ID)
	}
}

func ours(s api.AgentStatus, director string) bool {
	return s.Director == director
}

// live is the lane as the engine sees it.
func (l *lane) live() engine.LiveAgent {
	a := engine.LiveAgent{
		Agent: l.row, Up: l.up, Held: l.held, Message: l.message, InUse: l.inUse(),
		LastHeard: l.lastHeard, LastProgress: l.lastProgress,
	}
	if !l.up && !l.everUp && l.message == "" {
		a.Message = "not heard from yet"
	}
	return a
}

func poke(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}
