package push

import (
	"context"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/api"
	"github.com/signalbox-ai/signalbox/internal/execution"
)

// hearsFrom takes in that an agent answered. Where it was away, what it does is not
// known until a status says it: ask has it asked. It is called with Mu held, and
// what it returns once, which gives Mu back and tells of an agent that came up.
func (d *Dispatcher) agentHeard(l *lane, ask bool) (tell func()) {
	news, url, told := l.markHeard(d.opts.Monotonic()), l.Row.URL, l.term != nil
	l.stale = l.stale || (news && ask)
	d.Update(l)
	return func() {
		d.Mu.Unlock()
		if !news {
			return
		}
		d.Log.Info("", "agent", "up", "name", l.Name, "url", url)
		if told {
			d.Engine.NoteAgent(d.Ctx, signalbox.EventAgentUp, l.Name, url)
		}
		l.probing.Send()
		l.Wake.Send()
	}
}

// learn takes in a status. What the agent says it runs was heard of, too.
func (d *Dispatcher) applyStatus(l *lane, s api.AgentStatus) {
	wall := d.Engine.Now()
	d.Mu.Lock()
	defer d.Mu.Unlock()
	slots, isolated := l.Row.Slots, l.Isolated
	l.applyStatus(s)
	l.recordTasks(currentTasks(&s), d.opts.Monotonic(), wall)
	d.Update(l)
	if l.Row.Slots > slots || l.Isolated > isolated { // somebody may wait for them
		l.Bypass.Check()
		l.Wake.Send()
	}
}

// offered takes in what the agent's answer to an offer says of the agent.
func (r *run) offered() *execution.OfferReply[*lane, *run] {
	return &execution.OfferReply[*lane, *run]{
		Registry: &r.d.registry, Agent: r.lane, Run: &r.Run, Superseded: func() bool { return r.lane.term != r.term }, Busy: r.busy,
	}
}

// busy withholds offers from an agent that said busy, until it is free. Mu is held.
func (r *run) busy(why string) {
	r.refused = true
	if r.lane.term == r.term { // else it is another director's by now, and nobody here asks whether it is free
		r.lane.hold(why)
	}
	r.lane.probing.Send()
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
	wall := d.Engine.Now()
	d.Mu.Lock()
	l := d.Lanes[name]
	switch {
	case l == nil || (beat.URL != "" && !sameURL(beat.URL, l.Row.URL)):
		d.Mu.Unlock()
		return l == nil // it was registered a moment ago
	case beat.State == "stopping":
		d.Mu.Unlock()
		d.unreachable(l, execution.StoppingMessage)
		return true
	}
	l.Presence.CancelLeave()
	if !l.Presence.Up() || l.status.AgentKind == "" {
		d.Mu.Unlock()
		l.probing.Send()
		return true
	}
	l.status.State, l.status.CurrentTasks, l.status.CurrentTask = beat.State, beat.CurrentTasks, nil
	l.recordTasks(beat.CurrentTasks, d.opts.Monotonic(), wall)
	l.markHeard(d.opts.Monotonic())
	wasHeld := l.Withheld() != ""
	if l.ours() {
		l.updateAvailability(d.ID)
	}
	free := wasHeld && l.Withheld() == ""
	d.Update(l)
	d.Mu.Unlock()
	if free {
		l.Wake.Send()
	}
	return true
}

// Answers asks an agent, at the address that is known of it, whether it is
// there.
func (d *Dispatcher) Answers(ctx context.Context, name string) bool {
	d.Mu.Lock()
	l := d.Lanes[name]
	if l == nil {
		d.Mu.Unlock()
		return false
	}
	conn := l.conn
	d.Mu.Unlock()
	ctx, cancel := context.WithTimeout(ctx, discoverTimeout)
	defer cancel()
	s, err := conn.status(ctx)
	return err == nil && s.Type == "agent"
}
