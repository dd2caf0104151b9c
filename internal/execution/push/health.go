package push

import (
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/signalbox-ai/signalbox/api"
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
	healthOpen   healthState = iota // as much as it has room for
	healthPaused                    // nothing
	healthDue                       // one task: the pause is over
	healthTrying                    // nothing more: that task is on its way
)

// Health is the record of an agent's failures in a row, of one that is called and
// of one that pulls. The zero value is an agent that is well. Who has it guards it.
type Health struct {
	state    healthState
	failures int
	closed   bool
	reason   string
	since    time.Time // of the first of the failures, wall clock
	until    time.Time // end of the pause, wall clock
	turned   int       // offers in a row that the agent turned away as busy
	pauses   int       // in a row
	round    int       // counts all pauses: one that was cut short has no end of its own
}

// Failed notes a failure and returns how long the pause lasts and, where it
// begins now, its round, from 1: of offers that went out together, the first to
// fail begins it. sure says that the failure leaves no doubt that the agent is at
// fault.
func (h *Health) Failed(reason string, sure bool, now time.Time, jitter func(time.Duration) time.Duration) (pause time.Duration, round int) {
	if h.failures == 0 {
		h.since = now
	}
	h.failures++
	h.closed = h.closed || sure || h.failures >= closedAfter
	h.reason = reason
	if h.state == healthPaused {
		return min(max(h.until.Sub(now), 0), maxPause), 0
	}
	pause = jitter(min(firstPause<<min(h.pauses, 10), maxPause))
	h.state, h.until = healthPaused, now.Add(pause)
	h.pauses++
	h.round++
	return pause, h.round
}

// TurnedDown notes that the agent turned an offer away though it is to be had, and
// reports whether that happened so often that it is a failure.
func (h *Health) TurnedDown() bool {
	h.turned++
	return h.turned > 1
}

// Well forgets the failures: the agent did what an agent does. It reports whether
// more may be offered now than before, and whether the agent was closed.
func (h *Health) Well() (more, opened bool) {
	more, opened = h.state != healthOpen, h.closed
	*h = Health{round: h.round}
	return more, opened
}

// Due ends the pause of a round, and reports whether it did.
func (h *Health) Due(round int) bool {
	if h.round != round || h.state != healthPaused {
		return false
	}
	h.state = healthDue
	return true
}

// Room is how many of free slots may be offered something.
func (h *Health) Room(free int) int {
	switch h.state {
	case healthOpen:
		return free
	case healthDue:
		return min(1, free)
	}
	return 0
}

// Withholds says why nothing more is offered now; "" where something may be.
func (h *Health) Withholds() string {
	switch {
	case h.state != healthPaused && h.state != healthTrying:
		return ""
	case h.closed:
		return h.Closed().String()
	case h.state == healthTrying:
		return "one task tries whether it is well again: " + h.reason
	}
	return fmt.Sprintf("tried again with one task from %s: %s", h.until.UTC().Format("15:04:05 MST"), h.reason)
}

// Try notes that an offer is about to be made; Untried that it was not, or
// said nothing.
func (h *Health) Try() {
	if h.state == healthDue {
		h.state = healthTrying
	}
}

func (h *Health) Untried() {
	if h.state == healthTrying {
		h.state = healthDue
	}
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

// blames reports whether a refusal speaks of the agent and not of the task, and
// whether that leaves no doubt.
func blames(err error) (agent, sure bool) {
	var no *refusal
	if !errors.As(err, &no) {
		return false, false
	}
	return Blames(no.status, no.AgentRefusal.Error)
}

// Blames is the same of the status and the code with which an agent did not take
// a task.
func Blames(status int, code string) (agent, sure bool) {
	switch {
	case status == http.StatusUnauthorized, status == http.StatusInsufficientStorage:
		return true, true
	case status >= 500:
		return true, code == codeStorage
	}
	return status/100 == 3, false
}

// codeStorage is how an agent says that it cannot store a task.
const codeStorage = "storage_error"

// failed notes a failure of an agent. spare says that it is closed: the task
// that met this does not pay for it.
func (d *Dispatcher) failed(r *run, reason string, sure bool) (spare bool, delay time.Duration) {
	l := r.lane
	others := d.engine.OthersMayTake(l.name, r.claimed.Task.Queue)
	d.mu.Lock()
	if l.term != r.term { // it is another director's by now
		d.mu.Unlock()
		return false, 0
	}
	was := l.health.closed
	pause, round := l.health.Failed(reason, sure, d.engine.Now(), d.engine.Jitter)
	spare = l.health.closed
	if !others {
		delay = pause // so that another task is tried first
	}
	d.mark(l)
	d.mu.Unlock()
	if spare && !was {
		d.log.Warn("", "agent", "closed", "name", l.name, "error", reason, "retry_in", pause)
	}
	if round > 0 {
		d.endPause(l, round, pause)
	}
	return spare, delay
}

// endPause lets the agent be tried when its pause is over.
func (d *Dispatcher) endPause(l *lane, round int, pause time.Duration) {
	d.spawn(func() {
		sleep(d.ctx, pause)
		d.turn("health", l.name, 0)
		d.mu.Lock()
		if l.health.Due(round) {
			l.bypass = true
			d.mark(l)
		}
		d.mu.Unlock()
		poke(l.wake)
	})
}

// well notes that an agent did what an agent does.
func (d *Dispatcher) well(l *lane) {
	d.mu.Lock()
	more, opened := l.health.Well()
	d.mark(l)
	d.mu.Unlock()
	if more {
		poke(l.wake)
	}
	if opened {
		d.log.Info("", "agent", "opened", "name", l.name)
	}
}

// turnedAway notes a 409. An agent that says that it is idle and turns away all
// that it is offered is paused too.
func (d *Dispatcher) turnedAway(r *run, reason string) {
	d.mu.Lock()
	often := r.lane.term == r.term && r.lane.health.TurnedDown()
	r.lane.health.Untried()
	d.mark(r.lane)
	d.mu.Unlock()
	if often {
		d.failed(r, reason, false)
	}
}

// AtWork notes that the agent was seen at work: what it turned away, it turned
// away rightly.
func (h *Health) AtWork() { h.turned = 0 }

// works notes what a status says of that. Dispatcher.mu is held.
func (l *lane) works(s api.AgentStatus) {
	if s.State == "working" {
		l.health.AtWork()
	}
}

// untriedUnless notes that an offer that was to decide was not made, unless it was.
func (d *Dispatcher) untriedUnless(offered bool, l *lane) {
	if offered {
		return
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	l.health.Untried()
	d.mark(l)
}
