package push

import (
	"context"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/api"
	"github.com/signalbox-ai/signalbox/internal/execution"
)

// heard notes that an agent answered.
func (d *Dispatcher) heard(l *lane) { d.noteHeard(l, true) }

// noteHeard takes in that an agent answered. Where it was away, what it does
// is not known until a status says it.
func (d *Dispatcher) noteHeard(l *lane, ask bool) {
	d.mu.Lock()
	news, url, told := l.heard(d.opts.Monotonic()), l.row.URL, l.term != nil
	l.stale = l.stale || (news && ask)
	d.mark(l)
	d.mu.Unlock()
	if news {
		d.log.Info("", "agent", "up", "name", l.name, "url", url)
		if told {
			d.engine.NoteAgent(d.ctx, signalbox.EventAgentUp, l.name, url)
		}
		d.probe(l)
		l.wake.Send()
	}
}

// learn takes in a status. What the agent says it runs was heard of, too.
func (d *Dispatcher) learn(l *lane, s api.AgentStatus) {
	wall := d.engine.Now()
	d.mu.Lock()
	defer d.mu.Unlock()
	slots, isolated := l.row.Slots, l.status.IsolatedSlots
	l.learn(s)
	l.hear(currentTasks(&s), d.opts.Monotonic(), wall)
	d.mark(l)
	if l.row.Slots > slots || l.status.IsolatedSlots > isolated { // somebody may wait for them
		l.isolatedOffers.look()
		l.wake.Send()
	}
}

// Hold implements execution.Offerer: it withholds offers from an agent that said
// busy, until it is free. The slots have nothing to do with isolated executions.
func (r *run) Hold(why string) {
	if r.isolated {
		r.d.holdIsolated(r.lane)
		return
	}
	r.d.hold(r, why)
	r.TurnedAway(execution.TurnsAway + why)
}

func (d *Dispatcher) hold(r *run, why string) {
	d.mu.Lock()
	r.refused = true
	if r.lane.term == r.term { // else it is another director's by now, and nobody here asks whether it is free
		r.lane.hold(why)
		d.mark(r.lane)
	}
	d.mu.Unlock()
	d.probe(r.lane)
}

// RaiseFence implements execution.Offerer.
func (r *run) RaiseFence(highest int64) {
	r.d.mu.Lock()
	defer r.d.mu.Unlock()
	r.d.fences[r.lane.name] = max(r.d.fences[r.lane.name], highest)
}

// sameURL compares addresses of agents, also as releases before 2026-11 stored
// them.
func sameURL(a, b string) bool {
	x, _ := signalbox.AgentURL(a)
	y, _ := signalbox.AgentURL(b)
	return x == y
}

// Heartbeat notes that an agent was heard, and what it says of itself. A beat
// does not bring an agent up: it may speak from where it cannot be reached. ok
// is false where the agent of that name is known at another address: then
// another one speaks, or this one must register again.
func (d *Dispatcher) Heartbeat(name string, beat api.Heartbeat) (ok bool) {
	wall := d.engine.Now()
	d.mu.Lock()
	l := d.lanes[name]
	switch {
	case l == nil || (beat.URL != "" && !sameURL(beat.URL, l.row.URL)):
		d.mu.Unlock()
		return l == nil // it was registered a moment ago
	case beat.State == "stopping":
		d.mu.Unlock()
		d.unreachable(l, itStops)
		return true
	}
	l.presence.Stay()
	if !l.presence.Up() || l.status.AgentKind == "" {
		d.mu.Unlock()
		d.probe(l)
		return true
	}
	l.status.State, l.status.CurrentTasks, l.status.CurrentTask = beat.State, beat.CurrentTasks, nil
	l.hear(beat.CurrentTasks, d.opts.Monotonic(), wall)
	l.heard(d.opts.Monotonic())
	wasHeld := l.held()
	if l.ours() {
		l.updateAvailability(d.id)
	}
	free := wasHeld && !l.held()
	d.mark(l)
	d.mu.Unlock()
	if free {
		l.wake.Send()
	}
	return true
}

// Answers asks an agent, at the address that is known of it, whether it is
// there.
func (d *Dispatcher) Answers(ctx context.Context, name string) bool {
	d.mu.Lock()
	l := d.lanes[name]
	if l == nil {
		d.mu.Unlock()
		return false
	}
	conn := l.conn
	d.mu.Unlock()
	ctx, cancel := context.WithTimeout(ctx, discoverTimeout)
	defer cancel()
	s, err := conn.status(ctx)
	return err == nil && s.Type == "agent"
}
