package push

import (
	"context"
	"slices"
	"time"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/internal/execution"
)

// The interval of status requests, as divisors of Options.Probe. An agent that is heard
// from anyway, through heartbeats or runs, is not asked.
const (
	probeHeld     = 10 // held, or with slots withheld: notice soon that it is free
	probeDown     = 5  // the seed's discovery interval of 1 s
	probeFailures = 3  // failures in a row after which an agent is down (seed)
	probeTimeout  = 2 * time.Second
)

// Registered agents send a heartbeat every minHeartbeat, or less often if more than maxBeats a second would
// arrive.
const (
	minHeartbeat = 10 * time.Second
	maxHeartbeat = 30 * time.Second
	maxBeats     = 30
)

// leavingFor is how long an agent that announced that it stops gets no offers, even if it still answers.
const leavingFor = time.Minute

// HeartbeatInterval is how often registered agents should send a heartbeat.
func (d *Dispatcher) HeartbeatInterval() time.Duration {
	d.Mu.Lock()
	defer d.Mu.Unlock()
	return d.heartbeat()
}

func (d *Dispatcher) heartbeat() time.Duration {
	each := time.Duration((len(d.Order)+maxBeats-1)/maxBeats) * time.Second
	return min(max(each, minHeartbeat), maxHeartbeat)
}

// probeLoop keeps an agent's status up to date.
func (d *Dispatcher) probeLoop(ctx context.Context, l *lane) {
	select {
	case <-ctx.Done():
		return
	case <-d.adopted:
	}
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-timer.C:
		case <-l.probing:
		}
		d.Turn("probe", l.Name, 0)
		execution.Taken(l.probing) // one probe serves all requests so far
		if d.due(l) {
			d.probeOnce(ctx, l)
		}
		timer.Reset(d.probeInterval(l))
	}
}

// due reports whether a status request could tell anything new.
func (d *Dispatcher) due(l *lane) bool {
	d.Mu.Lock()
	defer d.Mu.Unlock()
	return !l.Presence.Up() || l.stale || l.Withheld() != "" || len(l.withheld) > 0 || l.Presence.Silence(d.opts.Monotonic()) >= d.silenceLimit(l)
}

// silenceLimit is how long an agent may be silent before it is asked.
func (d *Dispatcher) silenceLimit(l *lane) time.Duration {
	if l.Row.Source == signalbox.AgentRegistered || l.Row.Source == signalbox.AgentChild {
		return d.heartbeat() + d.opts.Probe
	}
	return d.opts.Probe
}

func (d *Dispatcher) probeInterval(l *lane) time.Duration {
	d.Mu.Lock()
	defer d.Mu.Unlock()
	switch {
	case !l.Presence.Up() || l.failures > 0:
		return d.opts.Probe / probeDown
	case l.Withheld() != "" || len(l.withheld) > 0:
		return d.opts.Probe / probeHeld
	}
	return d.alignProbe(max(d.silenceLimit(l)-l.Presence.Silence(d.opts.Monotonic()), d.opts.Probe/probeHeld))
}

// alignProbe delays the probe of a connected agent slightly, to a moment shared by all
// lanes: waking an idle process costs more than the probe.
func (d *Dispatcher) alignProbe(wait time.Duration) time.Duration {
	every := d.opts.Probe / probeHeld
	if every <= 0 {
		return wait
	}
	return wait + every - (d.opts.Monotonic().Sub(d.started)+wait)%every
}

// requestStatus requests the status of an agent that has just registered, since it may have
// been restarted.
func (d *Dispatcher) requestStatus(name string) {
	d.Mu.Lock()
	defer d.Mu.Unlock()
	if l := d.Lanes[name]; l != nil {
		l.stale = true
		l.Presence.CancelLeave()
		l.probing.Send()
	}
}

func (d *Dispatcher) probeOnce(ctx context.Context, l *lane) {
	d.Mu.Lock()
	conn, epoch, lost := l.conn, l.epoch, slices.Clone(l.withheld)
	l.stale = false // requests from now on need the next one
	d.Mu.Unlock()
	asking, cancel := context.WithTimeout(ctx, min(probeTimeout, d.opts.AskTimeout))
	s, err := conn.status(asking)
	cancel()
	if ctx.Err() != nil {
		return
	}
	if err != nil {
		d.probeFailed(l, err)
		return
	}
	d.applyStatus(l, s)
	d.keepProof(ctx, l, conn, s.Proof)
	d.Mu.Lock()
	d.agentHeard(l, false)()
	d.freeWithheld(ctx, l, s, lost)
	d.Mu.Lock()
	if l.epoch == epoch && l.ours() { // else the status may be outdated
		l.updateAvailability(d.ID)
	}
	if l.Isolated > 0 {
		l.Bypass.Check()
	}
	d.Update(l)
	d.Mu.Unlock()
	d.syncSessions(l)
	l.Wake.Send()
}

// keepProof records that an agent proves its identity: from then on nothing is sent to its
// address before it has.
func (d *Dispatcher) keepProof(ctx context.Context, l *lane, c *conn, proves bool) {
	d.Mu.Lock()
	row := l.stored
	news := proves && !row.Proof && c.token != "" && l.conn == c
	d.Mu.Unlock()
	if !news {
		return
	}
	row.Proof = true
	if _, err := d.Engine.PutAgent(ctx, row, c.token); err != nil {
		d.Log.Warn("the agent's proof of identity was not stored", "agent", l.Name, "error", err)
	}
}

func (d *Dispatcher) probeFailed(l *lane, err error) {
	d.Mu.Lock()
	l.failures++
	l.stale = true
	l.Presence.CancelLeave()
	gone := unsent(err) || l.failures >= probeFailures || statusOf(err) != 0
	d.Mu.Unlock()
	if gone {
		d.unreachable(l, err.Error())
	}
}

// unreachable marks an agent down.
func (d *Dispatcher) unreachable(l *lane, why string) {
	d.Mu.Lock()
	news, url := l.gone(d.opts.Monotonic(), why), l.Row.URL
	told := l.term != nil || why == execution.StoppingMessage // else the director that dispatches to it journals it
	d.Update(l)
	d.Mu.Unlock()
	if !news {
		return
	}
	d.Log.Warn("", "agent", "down", "name", l.Name, "url", url, "error", why)
	if told {
		d.Engine.Note(d.Ctx, signalbox.Entry{Kind: signalbox.EventAgentDown, Agent: l.Name, Message: why})
	}
}

// gone records that the agent is unreachable, and reports whether it was up.
func (l *lane) gone(now time.Time, why string) (news bool) {
	if why == execution.StoppingMessage {
		return l.Presence.Leave(now, now.Add(leavingFor), why)
	}
	return l.Presence.Gone(now, why)
}

// foreignDown handles another director's report that an agent is down: its status is
// requested from here, unless it announced itself that it stops.
func (d *Dispatcher) foreignDown(name, why string) {
	d.Mu.Lock()
	l := d.Lanes[name]
	if l == nil {
		d.Mu.Unlock()
		return
	}
	l.stale = true
	if why == execution.StoppingMessage {
		l.gone(d.opts.Monotonic(), why)
		d.Update(l)
	}
	d.Mu.Unlock()
	l.probing.Send()
}
