package execution

import (
	"fmt"
	"time"

	"github.com/signalbox-ai/signalbox"
)

// Each director keeps a circuit breaker per agent, in memory. An agent whose failures are
// its own gets no offers for a while, so that it does not use up the attempts of task after
// task. The pause doubles with each failure in a row; when it is over, one offer is the
// probe that decides. (/status would prove nothing: an agent with a full disk answers it.)

// Pauses, and when the agent counts as closed.
const (
	firstPause  = time.Second
	maxPause    = time.Minute
	closedAfter = 3 // failures in a row; one unambiguous failure is enough
)

// healthState says what an agent may be offered.
type healthState int

const (
	healthOpen     healthState = iota // as much as it has room for
	healthPaused                      // nothing
	healthProbeDue                    // one task: the pause is over
	healthProbing                     // nothing more: the probe is under way
)

// Health is the circuit breaker of an agent. The zero value is a healthy agent. Its owner
// guards it.
type Health struct {
	state      healthState
	failures   int
	closed     bool
	reason     string
	since      time.Time // wall clock: time of the first failure
	until      time.Time // wall clock: end of the pause
	turnedAway int       // offers in a row that the agent turned away as busy
	pauses     int       // in a row
	round      int       // number of the current pause, so that the timer of an earlier one is ignored
}

// Fault is the consequence of a failure.
type Fault struct {
	Closes bool          // the agent is closed from now on
	Defer  bool          // the agent is closed, so the failure costs the task no attempt
	Delay  time.Duration // before that task is offered to the agent again, so that another task goes first; 0: other agents may take it
	Pause  time.Duration // before the agent is offered anything
	Round  int           // number of the pause if it starts now, from 1; of offers sent together, only the first failure starts one
}

// Failed records a failure. sure says that it is certainly the agent's fault, others that
// another agent may take the task.
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

// TurnedAway records that the agent said busy although it seemed available, and reports
// whether that happened often enough to count as a failure.
func (h *Health) TurnedAway() bool {
	h.turnedAway++
	return h.turnedAway > 1
}

// Recover clears the failures after the agent has worked as expected. It reports whether
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

// Room is how many of free slots may be offered a task.
func (h *Health) Room(free int) int {
	switch h.state {
	case healthOpen:
		return free
	case healthProbeDue:
		return min(1, free)
	}
	return 0
}

// Withholds says why nothing is offered to the agent now; "" if something may be.
func (h *Health) Withholds(agent string) string {
	switch {
	case h.state != healthPaused && h.state != healthProbing:
		return ""
	case h.closed:
		return h.Closed(agent).String()
	case h.state == healthProbing:
		return "one task tries whether it is well again: " + h.reason
	}
	return fmt.Sprintf("tried again with one task from %s: %s", h.until.UTC().Format("15:04:05 MST"), h.reason)
}

// StartProbe records that an offer is about to be made.
func (h *Health) StartProbe() {
	if h.state == healthProbeDue {
		h.state = healthProbing
	}
}

// ProbeUndecided records that the offer was not made, or that its result says nothing about
// the agent, and reports whether it was the probe.
func (h *Health) ProbeUndecided() (tried bool) {
	if tried = h.state == healthProbing; tried {
		h.state = healthProbeDue
	}
	return tried
}

// Closed is the gate of a closed agent, whose Text says why; nil if it is not closed. Its Until
// is zero once the pause is over: the next task tries it.
func (h *Health) Closed(agent string) *signalbox.ClosedGate {
	if !h.closed {
		return nil
	}
	g := &signalbox.ClosedGate{Gate: signalbox.Gate{Kind: signalbox.GateAgent, Name: agent, Text: h.reason}, Failures: h.failures, Since: h.since}
	if h.state == healthPaused {
		g.Until = h.until
	}
	return g
}

// AtWork records that the agent is running something: it turned offers away with reason.
func (h *Health) AtWork() { h.turnedAway = 0 }
