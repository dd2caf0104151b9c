package push

import (
	"context"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/api"
	"github.com/signalbox-ai/signalbox/internal/execution"
)

// agentHeard records that an agent answered. If it was down, ask requests its status. Mu is
// held; the returned function must be called once: it unlocks Mu and reports an agent that
// came up.
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
			d.Engine.Note(d.Ctx, signalbox.Entry{Kind: signalbox.EventAgentUp, Agent: l.Name, Message: url})
		}
		l.probing.Send()
		l.Wake.Send()
	}
}

// applyStatus records a status, which also counts as hearing of the tasks in it.
func (d *Dispatcher) applyStatus(l *lane, s api.AgentStatus) {
	wall := d.Engine.Now()
	d.Mu.Lock()
	defer d.Mu.Unlock()
	slots, isolated := l.Row.Slots, l.Isolated
	l.applyStatus(s)
	d.ReportAccount(l, s.Account)
	l.recordTasks(currentTasks(&s), d.opts.Monotonic(), wall)
	d.Update(l)
	if l.Row.Slots > slots || l.Isolated > isolated { // tasks may be waiting for them
		l.Bypass.Check()
		l.Wake.Send()
	}
}

// offered receives what the agent's answer to an offer says about the agent.
func (r *run) offered() *execution.OfferReply[*lane, *run] {
	return &execution.OfferReply[*lane, *run]{
		Registry: &r.d.registry, Agent: r.lane, Run: &r.Run, Superseded: func() bool { return r.lane.term != r.term }, Busy: r.busy,
	}
}

// busy holds an agent that said busy. Mu is held.
func (r *run) busy(why string) {
	r.refused = true
	if r.lane.term == r.term { // else another director holds it, and this one would never ask whether it is free
		r.lane.hold(why)
	}
	r.lane.probing.Send()
}

// sameURL compares agent addresses, including those stored by releases before 2026-11.
func sameURL(a, b string) bool {
	x, _ := signalbox.AgentURL(a)
	y, _ := signalbox.AgentURL(b)
	return x == y
}

// Heartbeat records a heartbeat. It does not bring an agent up, since the agent may not be
// reachable from here. ok is false if the agent of that name is registered at another
// address.
func (d *Dispatcher) Heartbeat(name string, beat api.Heartbeat) (ok bool) {
	wall := d.Engine.Now()
	d.Mu.Lock()
	l := d.Lanes[name]
	switch {
	case l == nil || (beat.URL != "" && !sameURL(beat.URL, l.Row.URL)):
		d.Mu.Unlock()
		return l == nil // it may have registered a moment ago
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
	d.ReportAccount(l, beat.Account)
	l.recordTasks(beat.CurrentTasks, d.opts.Monotonic(), wall)
	l.markHeard(d.opts.Monotonic())
	wasHeld := l.Withheld() != ""
	l.ReportFull(beat.Full)
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

// Answers reports whether an agent answers at its known address.
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
