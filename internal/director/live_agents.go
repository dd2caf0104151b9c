package director

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/api"
	"github.com/signalbox-ai/signalbox/internal/engine"
)

// The faces of an agent, as api.LiveAgent has them.
const (
	faceIdle       = "idle"
	faceRunning    = "running"
	faceWaiting    = "waiting for capacity"
	faceCancelling = "cancelling"
	faceStuck      = "stuck"
	facePaused     = "paused"
	faceDraining   = "draining"
	faceDown       = "down"
	faceClosed     = "closed"
	faceWithheld   = "withheld"
)

// stuckAfter is how long a run may get on with nothing before its agent is
// called stuck.
const stuckAfter = 10 * time.Minute

// liveLane is an agent as a look sees it.
type liveLane struct {
	view *view
	row  *signalbox.Agent
	live engine.LiveAgent
	out  *api.LiveAgent
	runs []*signalbox.Task // in its slots
}

// addAgents adds the lanes of the agents, by name.
func (v *view) addAgents(s *scene) {
	rows := slices.DeleteFunc(slices.Clone(v.eyes.rows), func(a signalbox.Agent) bool { return isExecutor(a.Name) })
	for _, a := range v.live { // one that has just been added
		if !isExecutor(a.Name) && !slices.ContainsFunc(rows, func(r signalbox.Agent) bool { return r.Name == a.Name }) {
			rows = append(rows, a.Agent)
		}
	}
	slices.SortFunc(rows, func(a, b signalbox.Agent) int { return strings.Compare(a.Name, b.Name) })
	byID := make(map[string]*signalbox.Task, len(v.shot.InFlight))
	for i := range v.shot.InFlight {
		byID[v.shot.InFlight[i].ID] = &v.shot.InFlight[i]
	}
	for i := range rows {
		s.add(v.agentPart(&rows[i], byID))
	}
}

func (v *view) agentPart(row *signalbox.Agent, byID map[string]*signalbox.Task) *part {
	l := &liveLane{view: v, row: row, live: v.live[row.Name], out: &api.LiveAgent{Current: []api.LiveTask{}}}
	// To the second, or an agent that prints would change with every look.
	l.live.LastHeard, l.live.LastProgress = l.live.LastHeard.Truncate(time.Second), l.live.LastProgress.Truncate(time.Second)
	m := newMarking()
	var held []api.RunningTask
	slots := slices.Clone(v.slots[row.Name])
	slices.SortFunc(slots, func(a, b signalbox.Slot) int { return a.Slot - b.Slot }) // isolated ones are the last
	for _, slot := range slots {
		r := api.RunningTask{QueueID: slot.TaskID, Slot: slot.Slot, Fence: slot.Fence, Withheld: slot.Withheld}
		if t := byID[slot.TaskID]; t != nil {
			r.State, r.PromptPreview, r.StartedAt, r.Note = string(t.State), t.Preview, timePtr(t.StartedAt), v.flying[t.ID].Note
			l.out.Current = append(l.out.Current, *v.flying[t.ID])
			l.runs = append(l.runs, t)
			markTask(m, t.Rev, v.flying[t.ID])
		}
		held = append(held, r)
	}
	l.out.Agent = agentView(row, l.live, held)
	l.out.Agent.Waiting = v.shot.Counts.Queues[signalbox.AgentQueue(row.Name)]
	l.out.Agent.Terminals = v.eyes.d.terminals(row.Name)
	l.out.Pause = v.pauseOf(signalbox.AgentQueue(row.Name))
	l.out.Line, _ = v.line(signalbox.AgentQueue(row.Name), m)
	if typical := v.eyes.d.engine.Typical(v.ctx, row.Name); typical != nil {
		l.out.Typical = etaView(typical)
	}
	l.out.Face, l.out.FaceText = l.face()
	if len(l.runs) == 0 {
		v.eyes.mu.Lock()
		l.out.IdleAt = timePtr(v.eyes.idle[row.Name])
		v.eyes.mu.Unlock()
	}
	bare := *l.out
	bare.Current, bare.Line = nil, nil
	return &part{key: "agent:" + row.Name, agent: l.out, mark: m.json(&bare).sum()}
}

// face is the agent's state as a person calls it, and why. What needs a person
// goes before what does not.
func (l *liveLane) face() (face, why string) {
	if l.out.State == "down" {
		return faceDown, cmp.Or(l.out.Message, "not heard from")
	}
	if l.live.Closed != nil {
		return faceClosed, l.live.Closed.String()
	}
	for i, t := range l.runs {
		if row := &l.out.Current[i]; row.CancelledAt != nil {
			return faceCancelling, fmt.Sprintf("%s is being cancelled for %s, and the agent has not confirmed", t.ID, roughly(l.view.now.Sub(*row.CancelledAt)))
		}
	}
	if why := l.stuck(); why != "" {
		return faceStuck, why
	}
	switch {
	case l.out.Pause != nil && len(l.runs) > 0:
		return faceDraining, pauseText(l.out.Pause) + "; it takes nothing after what it runs"
	case l.out.Pause != nil:
		return facePaused, pauseText(l.out.Pause)
	}
	if call := l.waitsFor(); call != nil {
		return faceWaiting, fmt.Sprintf("waits for %s, of which %d of %d are in use", call.Capacity, call.InUse, call.Concurrent)
	}
	switch {
	case len(l.runs) > 0:
		return faceRunning, ""
	case l.out.State == "withheld":
		return faceWithheld, cmp.Or(l.out.Message, "a task that is lost here may still run there")
	}
	return faceIdle, ""
}

// stuck says why the agent is taken for stuck; "" if it is not.
func (l *liveLane) stuck() string {
	now := l.view.now
	if len(l.runs) == 0 {
		return ""
	}
	if silent := now.Sub(l.live.LastHeard); !l.live.LastHeard.IsZero() && silent > l.view.silence() {
		return "not heard from for " + roughly(silent)
	}
	for i, t := range l.runs {
		if still := l.stillFor(t, &l.out.Current[i]); still > stuckAfter {
			return fmt.Sprintf("%s has not got on for %s, though the agent answers", t.ID, roughly(still))
		}
	}
	return ""
}

// stillFor is how long a run has shown no progress. Of an agent that never
// tells of progress that is not known, nor while a call waits for its turn.
func (l *liveLane) stillFor(t *signalbox.Task, row *api.LiveTask) time.Duration {
	tells := l.live.Fencing || !l.live.LastProgress.IsZero()
	if t.State != signalbox.Working || !tells || row.Call != nil && row.Call.Waiting {
		return 0
	}
	last := t.StartedAt
	if row.LastProgress != nil {
		last = *row.LastProgress
	}
	return l.view.now.Sub(last)
}

// silence is for how long an agent at work may not be heard.
func (v *view) silence() time.Duration { return 3 * v.eyes.d.runs.HeartbeatInterval() }

// waitsFor is the call for whose turn all runs of the agent wait; the first of
// them, nil where one gets on.
func (l *liveLane) waitsFor() (call *api.LiveCall) {
	for i := range l.runs {
		c := l.out.Current[i].Call
		if c == nil || !c.Waiting {
			return nil
		}
		if call == nil {
			call = c
		}
	}
	return call
}

func pauseText(p *api.Pause) string {
	text := "paused"
	if p.By != "" {
		text += " by " + p.By
	}
	if p.Reason != "" {
		text += ": " + p.Reason
	}
	return text
}

// roughly is a length of time that does not change with every second.
func roughly(d time.Duration) string {
	switch {
	case d < 10*time.Second:
		return "a few seconds"
	case d < time.Minute:
		return fmt.Sprintf("%d s", int(d.Seconds())/10*10)
	case d < time.Hour:
		return fmt.Sprintf("%d min", int(d.Minutes()))
	case d < 48*time.Hour:
		return fmt.Sprintf("%d h", int(d.Hours()))
	}
	return fmt.Sprintf("%d days", int(d.Hours())/24)
}

// sum makes the figures of the whole out of what was read at one moment.
func (v *view) sum(s *scene) {
	c, t := v.shot.Counts, &s.totals
	waiting := waitingTools(c)
	*t = api.Totals{Pending: c.Pending - waiting, ToolsWaiting: waiting, MaxSize: v.eyes.d.engine.MaxSize()}
	if !c.Oldest.IsZero() {
		t.OldestAgeSeconds = max(0, int64(v.now.Sub(c.Oldest).Seconds()))
	}
	for i := range v.shot.InFlight {
		task := &v.shot.InFlight[i]
		switch {
		case isExecutor(task.Agent):
			t.ToolsRunning++
		case signalbox.Isolated(task.Slot):
			t.Running++
			t.Isolated++
		default:
			t.Running++
		}
	}
	t.Slots = t.Isolated
	for _, p := range s.order {
		if p.agent == nil {
			continue
		}
		t.Agents++
		offered := 0
		if p.agent.State != "down" {
			t.AgentsUp++
			offered = p.agent.Slots
		}
		t.Slots += max(offered, p.agent.InUse)
		delete(v.slots, p.agent.Name)
	}
	for name, held := range v.slots { // of agents that are no longer known
		if !isExecutor(name) {
			t.Slots += len(slices.DeleteFunc(held, func(s signalbox.Slot) bool { return signalbox.Isolated(s.Slot) }))
		}
	}
}
