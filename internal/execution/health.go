package execution

import (
	"fmt"
	"time"

	"github.com/signalbox-ai/signalbox/internal/engine"
)

// An agent that fails in a way which speaks of itself is given nothing for a
// while, so that its failures do not use up the attempts of task after task. The
// pause doubles with each failure in a row; when it is over, one offer goes out
// and decides: /status would prove nothing, a full disk answers it. Each
// director decides that for the agents it dispatches to and those that pull from
// it, in memory.

// How long the pauses are, and when the agent is called closed.
const (
	firstPause  = time.Second
	maxPause    = time.Minute
	closedAfter = 3 // failures in a row; one that leaves no doubt is enough
)

// healthState says what an agent may be offered as far as its health goes.
type healthState int

const (
	healthOpen     healthState = iota // as much as it has room for
	healthPaused                      // nothing
	healthProbeDue                    // one task: the pause is over
	healthProbing                     // nothing more: that task is on its way
)

// Health is the record of an agent's failures in a row, of one that is called and
// of one that pulls. The zero value is an agent that is well. Who has it guards it.
type Health struct {
	state      healthState
	failures   int
	closed     bool
	reason     string
	since      time.Time // of the first of the failures, wall clock
	until      time.Time // end of the pause, wall clock
	turnedAway int       // offers in a row that the agent turned away as busy
	pauses     int       // in a row
	round      int       // counts all pauses: one that was cut short has no end of its own
}

// Fault is what follows from a failure of an agent.
type Fault struct {
	Closes bool          // it is closed from now on
	Defer  bool          // it is closed: the task that met this does not pay for it
	Delay  time.Duration // before the agent is offered that task again, so that another one is tried first; 0: others may take it
	Pause  time.Duration // before the agent is offered anything
	Round  int           // of the pause where it begins now, from 1: of offers that went out together, the first to fail begins it
}

// Failed notes a failure. sure says that the failure leaves no doubt that the agent
// is at fault, others that the task may go to another agent.
func (h *Health) Failed(reason string, sure, others bool, now time.Time, jitter func(time.Duration) time.Duration) (f Fault) {
	if h.failures == 0 {
		h.since = now
	}
	h.failures++
	f.Defer = h.closed || sure || h.failures >= closedAfter
	f.Closes = f.Defer && !h.closed
	h.closed, h.reason = f.Defer, reason
	if h.state == healthPaused {
		f.Pause = min(max(h.until.Sub(now), 0), maxPause)
	} else {
		f.Pause = jitter(min(firstPause<<min(h.pauses, 10), maxPause))
		h.state, h.until = healthPaused, now.Add(f.Pause)
		h.pauses++
		h.round++
		f.Round = h.round
	}
	if !others {
		f.Delay = f.Pause
	}
	return f
}

// TurnedDown notes that the agent turned an offer away though it is to be had, and
// reports whether that happened so often that it is a failure.
func (h *Health) TurnedAway() bool {
	h.turnedAway++
	return h.turnedAway > 1
}

// Well forgets the failures: the agent did what an agent does. It reports whether
// more may be offered now than before, and whether the agent was closed.
func (h *Health) Recover() (more, opened bool) {
	more, opened = h.state != healthOpen, h.closed
	*h = Health{round: h.round}
	return more, opened
}

// Due ends the pause of a round, and reports whether it did.
func (h *Health) Due(round int) bool {
	if h.round != round || h.state != healthPaused {
		return false
	}
	h.state = healthProbeDue
	return true
}

// Room is how many of free slots may be offered something.
func (h *Health) Room(free int) int {
	switch h.state {
	case healthOpen:
		return free
	case healthProbeDue:
		return min(1, free)
	}
	return 0
}

// Withholds says why nothing more is offered now; "" where something may be.
func (h *Health) Withholds() string {
	switch {
	case h.state != healthPaused && h.state != healthProbing:
		return ""
	case h.closed:
		return h.Closed().String()
	case h.state == healthProbing:
		return "one task tries whether it is well again: " + h.reason
	}
	return fmt.Sprintf("tried again with one task from %s: %s", h.until.UTC().Format("15:04:05 MST"), h.reason)
}

// Try notes that an offer is about to be made.
func (h *Health) StartProbe() {
	if h.state == healthProbeDue {
		h.state = healthProbing
	}
}

// Untried notes that it was not made, or said nothing, and reports whether it was
// the one task that tries whether the agent is well again.
func (h *Health) ProbeUndecided() (tried bool) {
	if tried = h.state == healthProbing; tried {
		h.state = healthProbeDue
	}
	return tried
}

// Closed tells people of an agent that is closed; nil where it is not.
func (h *Health) Closed() *engine.AgentClosed {
	if !h.closed {
		return nil
	}
	c := &engine.AgentClosed{Reason: h.reason, Failures: h.failures, Since: h.since}
	if h.state == healthPaused {
		c.RetryAt = h.until
	}
	return c
}

// AtWork notes that the agent was seen at work: what it turned away, it turned
// away rightly.
func (h *Health) AtWork() { h.turnedAway = 0 }
