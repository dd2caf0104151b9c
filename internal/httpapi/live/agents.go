package live

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/api"
	"github.com/signalbox-ai/signalbox/internal/engine"
	"github.com/signalbox-ai/signalbox/internal/httpapi/view"
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

// liveAgent is an agent as it was made an entity of.
type liveAgent struct {
	row       *signalbox.Agent
	live      engine.LiveAgent
	out       *api.LiveAgent
	runs      []*signalbox.Task // in its slots
	attention []attention
	slots     int // that it offers, or that are held all the same
}

func (a *liveAgent) up() bool { return a.out.State != "down" }

// keep puts an agent in the place of what it was.
func (b *builder) keep(a *liveAgent) {
	b.forget(a.row.Name)
	b.agents[a.row.Name] = a
	a.slots = a.out.InUse
	if a.up() {
		b.up++
		a.slots = max(a.slots, a.out.Slots)
	}
	b.offered += a.slots
	if len(a.attention) > 0 {
		b.needAttention[a.row.Name] = true
	}
}

func (b *builder) forget(name string) {
	a := b.agents[name]
	if a == nil {
		return
	}
	delete(b.agents, name)
	delete(b.needAttention, name)
	b.offered -= a.slots
	if a.up() {
		b.up--
	}
}

// agentEntity makes an agent's entity, and those of its tasks.
func (l *refresh) agentEntity(row *signalbox.Agent) *entity {
	a := &liveAgent{row: row, live: l.liveOf(row.Name), out: &api.LiveAgent{Current: []api.LiveTask{}}}
	// To the second, or an agent that prints would change with every look.
	a.live.LastHeard, a.live.LastProgress = a.live.LastHeard.Truncate(time.Second), a.live.LastProgress.Truncate(time.Second)
	var held []api.RunningTask
	slots := slices.Clone(l.slots[row.Name])
	slices.SortFunc(slots, func(a, b signalbox.Slot) int { return a.Slot - b.Slot }) // isolated ones are the last
	for _, slot := range slots {
		r := api.RunningTask{QueueID: slot.TaskID, Slot: slot.Slot, Fence: slot.Fence, Withheld: slot.Withheld}
		if t := l.inFlight[slot.TaskID]; t != nil {
			task := l.taskRow(t, a.live)
			r.State, r.PromptPreview, r.StartedAt, r.Note = string(t.State), t.Preview, view.Time(t.StartedAt), task.Note
			a.out.Current, a.runs = append(a.out.Current, task), append(a.runs, t)
			l.set(&entity{key: taskKey(t.ID), task: &task, owner: t.Owner})
			delete(l.dirtyTasks, t.ID)
		}
		held = append(held, r)
	}
	a.out.Agent = view.Agent(row, a.live, held)
	a.out.Agent.Waiting = l.snapshot.Counts.Queues[signalbox.AgentQueue(row.Name)]
	a.out.Agent.Terminals = l.cfg.Terminals(row.Name)
	a.out.Pause = l.pauseOf(signalbox.AgentQueue(row.Name))
	a.out.Line, _ = l.line(signalbox.AgentQueue(row.Name))
	if typical := l.cfg.Engine.Typical(l.ctx, row.Name); typical != nil {
		a.out.Typical = view.ETA(typical)
	}
	if len(a.runs) == 0 {
		a.out.IdleAt = view.Time(l.inbox.idleSince(row.Name))
	}
	j := judge{now: l.now, silence: 3 * l.cfg.HeartbeatInterval()}
	a.out.Face, a.out.FaceText = j.face(a)
	j.agent(a)
	l.keep(a)
	l.due.set(row.Name, j.due)
	return &entity{key: "agent:" + row.Name, agent: a.out}
}

// face is the agent's state as a person calls it, and why. What needs a person
// goes before what does not.
func (j *judge) face(a *liveAgent) (face, why string) {
	if a.out.State == "down" {
		return faceDown, cmp.Or(a.out.Message, "not heard from")
	}
	if a.live.Closed != nil {
		return faceClosed, a.live.Closed.String()
	}
	for i, t := range a.runs {
		if row := &a.out.Current[i]; row.CancelledAt != nil {
			return faceCancelling, fmt.Sprintf("%s is being cancelled for %s, and the agent has not confirmed", t.ID, j.ago(*row.CancelledAt))
		}
	}
	if why := j.stuckWhy(a); why != "" {
		return faceStuck, why
	}
	switch {
	case a.out.Pause != nil && len(a.runs) > 0:
		return faceDraining, pauseText(a.out.Pause) + "; it takes nothing after what it runs"
	case a.out.Pause != nil:
		return facePaused, pauseText(a.out.Pause)
	}
	if call := a.waitsFor(); call != nil {
		return faceWaiting, fmt.Sprintf("waits for %s, of which %d of %d are in use", call.Capacity, call.InUse, call.Concurrent)
	}
	switch {
	case len(a.runs) > 0:
		return faceRunning, ""
	case a.out.State == "withheld":
		return faceWithheld, cmp.Or(a.out.Message, "a task that is lost here may still run there")
	}
	return faceIdle, ""
}

// stuckWhy says why the agent is taken for stuck; "" if it is not.
func (j *judge) stuckWhy(a *liveAgent) string {
	if len(a.runs) == 0 {
		return ""
	}
	if j.silent(a) {
		return "not heard from for " + j.ago(a.live.LastHeard)
	}
	for i, t := range a.runs {
		if last := a.lastSign(t, &a.out.Current[i]); !last.IsZero() && j.past(last, stuckAfter) {
			return fmt.Sprintf("%s has not got on for %s, though the agent answers", t.ID, j.ago(last))
		}
	}
	return ""
}

// silent reports whether an agent at work has not been heard from for too long.
func (j *judge) silent(a *liveAgent) bool {
	return !a.live.LastHeard.IsZero() && j.past(a.live.LastHeard, j.silence)
}

// lastSign is when a run showed progress last. Zero: of an agent that never tells
// of progress that is not known, nor while a call waits for its turn.
func (a *liveAgent) lastSign(t *signalbox.Task, row *api.LiveTask) time.Time {
	tells := a.live.Fencing || !a.live.LastProgress.IsZero()
	switch {
	case t.State != signalbox.Working || !tells || row.Call != nil && row.Call.Waiting:
		return time.Time{}
	case row.LastProgress != nil:
		return *row.LastProgress
	}
	return t.StartedAt
}

// waitsFor is the call for whose turn all runs of the agent wait; the first of
// them, nil where one gets on.
func (a *liveAgent) waitsFor() (call *api.LiveCall) {
	for i := range a.runs {
		c := a.out.Current[i].Call
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
	text, _ := coarsely(d)
	return text
}

// coarsely says a length of time roughly, and after how long it is said otherwise.
func coarsely(d time.Duration) (text string, next time.Duration) {
	step := 24 * time.Hour
	switch {
	case d < 10*time.Second:
		return "a few seconds", 10*time.Second - d
	case d < time.Minute:
		text, step = fmt.Sprintf("%d s", int(d.Seconds())/10*10), 10*time.Second
	case d < time.Hour:
		text, step = fmt.Sprintf("%d min", int(d.Minutes())), time.Minute
	case d < 48*time.Hour:
		text, step = fmt.Sprintf("%d h", int(d.Hours())), time.Hour
	default:
		text = fmt.Sprintf("%d days", int(d.Hours())/24)
	}
	return text, step - d%step
}

// sumTotals makes the figures of the whole out of what was read at one moment.
func (l *refresh) sumTotals() {
	c, t := l.snapshot.Counts, &l.state.totals
	waiting := c.WaitingCalls()
	*t = api.Totals{Pending: c.Pending - waiting, ToolsWaiting: waiting, MaxSize: l.cfg.Engine.MaxSize(), Agents: len(l.agents), AgentsUp: l.up}
	if !c.Oldest.IsZero() {
		t.OldestAgeSeconds = max(0, int64(l.now.Sub(c.Oldest).Seconds()))
	}
	for i := range l.snapshot.InFlight {
		task := &l.snapshot.InFlight[i]
		switch {
		case signalbox.IsExecutor(task.Agent):
			t.ToolsRunning++
		case signalbox.Isolated(task.Slot):
			t.Running++
			t.Isolated++
		default:
			t.Running++
		}
	}
	t.Slots = t.Isolated + l.offered
	for name, held := range l.slots { // of agents that are no longer known
		if _, known := l.rows[name]; !known && !signalbox.IsExecutor(name) {
			for _, s := range held {
				if !signalbox.Isolated(s.Slot) {
					t.Slots++
				}
			}
		}
	}
}
