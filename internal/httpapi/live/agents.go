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

// The values of api.LiveAgent.Face.
const (
	faceIdle       = "idle"
	faceRunning    = "running"
	faceWaiting    = "waiting for capacity"
	faceAccount    = "waiting for account"
	faceCancelling = "cancelling"
	faceStuck      = "stuck"
	facePaused     = "paused"
	faceDraining   = "draining"
	faceDown       = "down"
	faceClosed     = "closed"
	faceWithheld   = "withheld"
)

// stuckAfter is how long a run may print nothing before its agent counts as
// stuck.
const stuckAfter = 10 * time.Minute

// agentState is an agent as of its last rebuild.
type agentState struct {
	row      *signalbox.Agent
	live     engine.LiveAgent
	out      *api.LiveAgent    // what readers see
	runs     []*signalbox.Task // the tasks in its slots, in the order of out.Current
	findings []finding
	slots    int // its share of Totals.Slots, without isolated runs
}

func (a *agentState) up() bool { return a.out.State != "down" }

// putAgent adds or replaces an agent and updates the sums over all agents.
func (b *builder) putAgent(a *agentState) {
	b.removeAgent(a.row.Name)
	b.agents[a.row.Name] = a
	a.slots = a.out.InUse
	if a.up() {
		b.agentsUp++
		a.slots = max(a.slots, a.out.Slots)
	}
	b.agentSlots += a.slots
	if len(a.findings) > 0 {
		b.troubled[a.row.Name] = true
	}
}

func (b *builder) removeAgent(name string) {
	a := b.agents[name]
	if a == nil {
		return
	}
	delete(b.agents, name)
	delete(b.troubled, name)
	b.agentSlots -= a.slots
	if a.up() {
		b.agentsUp--
	}
}

// agentEntity rebuilds an agent and the tasks in its slots. It sets the entities
// of the tasks, and returns that of the agent.
func (r *refresh) agentEntity(row *signalbox.Agent) *entity {
	a := &agentState{row: row, live: r.liveAgent(row.Name), out: &api.LiveAgent{Current: []api.LiveTask{}}}
	// Whole seconds: otherwise an agent that prints would differ at every refresh.
	a.live.LastHeard, a.live.LastProgress = a.live.LastHeard.Truncate(time.Second), a.live.LastProgress.Truncate(time.Second)
	var held []api.RunningTask
	slots := slices.Clone(r.slots[row.Name])
	slices.SortFunc(slots, func(a, b signalbox.Slot) int { return a.Slot - b.Slot }) // isolated ones are last
	for _, slot := range slots {
		running := api.RunningTask{QueueID: slot.TaskID, Slot: slot.Slot, Fence: slot.Fence, Withheld: slot.Withheld}
		if t := r.inFlight[slot.TaskID]; t != nil {
			task := r.liveTask(t, a.live)
			running.State, running.PromptPreview, running.StartedAt, running.Note = string(t.State), t.Preview, view.Time(t.StartedAt), task.Note
			a.out.Current, a.runs = append(a.out.Current, task), append(a.runs, t)
			r.set(&entity{key: taskKey(t.ID), task: &task, owner: t.Owner})
			delete(r.dirtyTasks, t.ID)
		}
		held = append(held, running)
	}
	a.out.Agent = view.Agent(row, a.live, held)
	a.out.Agent.Waiting = r.snapshot.Counts.Queues[signalbox.AgentQueue(row.Name)]
	a.out.Agent.Terminals = r.cfg.Terminals(row.Name)
	a.out.Pause = r.pauseOf(signalbox.AgentQueue(row.Name))
	a.out.Line, _ = r.line(signalbox.AgentQueue(row.Name))
	if typical := r.cfg.Engine.Typical(r.ctx, row.Name); typical != nil {
		a.out.Typical = view.ETA(typical)
	}
	if len(a.runs) == 0 {
		a.out.IdleAt = view.Time(r.inbox.idleSince(row.Name))
	}
	c := checker{now: r.now, maxSilence: 3 * r.cfg.HeartbeatInterval(), account: r.blockedText(a.live.Account)}
	a.out.Face, a.out.FaceText = c.face(a)
	c.checkAgent(a)
	r.putAgent(a)
	r.due.set(row.Name, c.due)
	return &entity{key: "agent:" + row.Name, agent: a.out}
}

// face is the state of an agent in one word, and the reason. If several apply, one
// that needs a person wins.
func (c *checker) face(a *agentState) (face, why string) {
	if a.out.State == "down" {
		return faceDown, cmp.Or(a.out.Message, "not heard from")
	}
	if a.live.Closed != nil {
		return faceClosed, a.live.Closed.String()
	}
	for i, t := range a.runs {
		if row := &a.out.Current[i]; row.CancelledAt != nil {
			return faceCancelling, fmt.Sprintf("%s is being cancelled for %s, and the agent has not confirmed", t.ID, c.ago(*row.CancelledAt))
		}
	}
	if why := c.stuckReason(a); why != "" {
		return faceStuck, why
	}
	switch {
	case a.out.Pause != nil && len(a.runs) > 0:
		return faceDraining, pauseText(a.out.Pause) + "; it takes nothing after what it runs"
	case a.out.Pause != nil:
		return facePaused, pauseText(a.out.Pause)
	}
	if call := a.waitingCall(); call != nil {
		return faceWaiting, fmt.Sprintf("waits for %s, of which %d of %d are in use", call.Capacity, call.InUse, call.Concurrent)
	}
	switch {
	case len(a.runs) > 0:
		return faceRunning, c.account
	case a.out.State == "withheld":
		return faceWithheld, cmp.Or(a.out.Message, "a task that is lost here may still run there")
	}
	if c.account != "" {
		return faceAccount, c.account
	}
	return faceIdle, ""
}

// stuckReason says why the agent counts as stuck; "" if it does not.
func (c *checker) stuckReason(a *agentState) string {
	if len(a.runs) == 0 {
		return ""
	}
	if c.silent(a) {
		return "not heard from for " + c.ago(a.live.LastHeard)
	}
	for i, t := range a.runs {
		if last := a.lastProgress(t, &a.out.Current[i]); !last.IsZero() && c.olderThan(last, stuckAfter) {
			return fmt.Sprintf("%s has not got on for %s, though the agent answers", t.ID, c.ago(last))
		}
	}
	return ""
}

// silent reports whether the last sign of life of the agent is older than maxSilence.
func (c *checker) silent(a *agentState) bool {
	return !a.live.LastHeard.IsZero() && c.olderThan(a.live.LastHeard, c.maxSilence)
}

// lastProgress is when a run last printed something, or started. It is zero if the
// agent does not report progress, if the run is not working, or while the run waits
// for a tool queue.
func (a *agentState) lastProgress(t *signalbox.Task, row *api.LiveTask) time.Time {
	reports := a.live.Fencing || !a.live.LastProgress.IsZero()
	switch {
	case t.State != signalbox.Working || !reports || row.Call != nil && row.Call.Waiting:
		return time.Time{}
	case row.LastProgress != nil:
		return *row.LastProgress
	}
	return t.StartedAt
}

// waitingCall is the first call of the agent's runs if all runs wait for tool queues,
// else nil.
func (a *agentState) waitingCall() (call *api.LiveCall) {
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

// roughly returns the text of roughDuration.
func roughly(d time.Duration) string {
	text, _ := roughDuration(d)
	return text
}

// roughDuration formats a duration in one unit, and returns for how long the
// text stays the same while the duration grows.
func roughDuration(d time.Duration) (text string, validFor time.Duration) {
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

// sumTotals sets the totals, except those of the tally, from the snapshot and the sums
// over the agents.
func (r *refresh) sumTotals() {
	counts, t := r.snapshot.Counts, &r.state.totals
	waiting := counts.WaitingCalls()
	*t = api.Totals{Pending: counts.Pending - waiting, ToolsWaiting: waiting, MaxSize: r.cfg.Engine.Options().MaxSize, Agents: len(r.agents), AgentsUp: r.agentsUp}
	if !counts.Oldest.IsZero() {
		t.OldestAgeSeconds = max(0, int64(r.now.Sub(counts.Oldest).Seconds()))
	}
	for i := range r.snapshot.InFlight {
		task := &r.snapshot.InFlight[i]
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
	t.Slots = t.Isolated + r.agentSlots
	for name, held := range r.slots { // slots of removed agents
		if _, known := r.rows[name]; !known && !signalbox.IsExecutor(name) {
			for _, s := range held {
				if !signalbox.Isolated(s.Slot) {
					t.Slots++
				}
			}
		}
	}
}
