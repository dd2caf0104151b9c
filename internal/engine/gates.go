package engine

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/internal/store"
)

// Gate is the current state of one condition for the start of a task.
type Gate struct {
	Name   string
	OK     bool
	Text   string // the condition with its numbers
	Detail string
	Cure   string // what a person can do; "" if the gate is open
	TaskID string // the blocking task
	Agent  string
}

func (e *Engine) gateDue(_ context.Context, t *signalbox.Task) (Gate, error) {
	g := Gate{Name: "due", OK: true, Text: "Task is due", Detail: fmt.Sprintf("created %s ago (%s)", e.since(t.CreatedAt), t.Source)}
	wait := t.NotBefore.Sub(e.Now())
	if wait <= 0 {
		return g, nil
	}
	g.OK = false
	g.Text = fmt.Sprintf("Task is due in %s", wait.Round(time.Second))
	if t.Attempts == 0 && t.NoAnswers > 0 {
		g.Detail = "its last offer came to nothing: " + t.LastError
		g.Cure = "It is tried again by itself."
	} else if t.Attempts > 0 {
		g.Detail = fmt.Sprintf("attempt %d of %d failed: %s", t.Attempts, t.MaxAttempts, t.LastError)
		g.Cure = "It is tried again by itself."
	} else {
		g.Detail = "not before " + t.NotBefore.Format(time.RFC3339)
		g.Cure = "Wait, or cancel it and submit it without not_before."
	}
	return g, nil
}

func (e *Engine) gateOpen(ctx context.Context, t *signalbox.Task) (Gate, error) {
	pauses, err := e.store.Pauses(ctx)
	g := Gate{Name: "queue_open", OK: true, Text: "Queue is open", Detail: t.Queue + " is not paused"}
	for _, p := range pauses {
		if (p.Queue != "" && p.Queue != t.Queue) || !e.inForce(&p) {
			continue
		}
		g.OK = false
		name, arg := p.Queue, " "+p.Queue
		if p.Queue == "" {
			name, arg = "every queue", ""
		}
		g.Text = fmt.Sprintf("Queue is paused: %s, by %s for %s", name, cmp.Or(p.By, "someone"), e.since(time.UnixMilli(p.AtMS)))
		g.Detail = cmp.Or(p.Reason, "no reason was given")
		g.Cure = "signalbox resume" + arg
	}
	return g, err
}

func (e *Engine) gateSession(ctx context.Context, t *signalbox.Task) (Gate, error) {
	g := Gate{Name: "session_free", OK: true, Text: "Session is free", Detail: "it belongs to no session"}
	if t.SessionID == "" {
		return g, nil
	}
	g.Detail = "no other turn of session " + t.SessionID + " is before it"
	turns, err := e.store.SessionTasks(ctx, t.SessionID, 2)
	if err != nil {
		return g, err
	}
	for _, other := range turns {
		if other.ID == t.ID || (other.State == signalbox.Pending && !other.Ready) {
			continue
		}
		g.OK, g.TaskID = false, other.ID
		g.Text = fmt.Sprintf("Session %s has another turn before it", t.SessionID)
		g.Detail = fmt.Sprintf("%s is %s; one turn of a session runs at a time", other.ID, other.State)
		g.Cure = "Wait for it, or signalbox cancel " + other.ID
	}
	return g, nil
}

// gateConnected also returns the connected agents that serve the task's queue.
func (e *Engine) gateConnected(t *signalbox.Task) (Gate, []LiveAgent) {
	if isToolQueue(t.Queue) {
		return e.toolConnected(t)
	}
	var up []LiveAgent
	var down []string
	for _, a := range e.LiveAgents() {
		switch {
		case !a.Serves(t.Queue):
		case a.Up:
			up = append(up, a)
		default:
			down = append(down, fmt.Sprintf("%s (%s)", a.Name, cmp.Or(a.Message, "not heard from")))
		}
	}
	g := Gate{Name: "agent_connected", OK: len(up) > 0}
	name, one := signalbox.OnlyAgent(t.Queue)
	switch {
	case g.OK && one:
		g.Text = "Agent " + name + " is connected"
	case g.OK:
		g.Text = fmt.Sprintf("%d of %d agents that serve %s are connected", len(up), len(up)+len(down), t.Queue)
	case len(down) > 0:
		g.Text = "No agent that serves " + t.Queue + " is connected"
		g.Detail = "gone: " + strings.Join(down[:min(5, len(down))], ", ")
		g.Cure = "Start the agent again; signalbox agents shows where it was."
	default:
		g.Text = "No agent serves " + t.Queue
		g.Cure = "Start one: signalbox agent --director URL"
	}
	if one {
		g.Agent = name
	}
	if gone := e.holderGone(t); gone != "" {
		g.Text = strings.ToUpper(gone[:1]) + gone[1:]
	}
	return g, up
}

func (e *Engine) gateFree(ctx context.Context, t *signalbox.Task, servers []LiveAgent) (Gate, error) {
	if isToolQueue(t.Queue) {
		return e.toolFree(ctx, t, servers)
	}
	g := Gate{Name: "agent_free"}
	if len(servers) == 0 {
		g.Text = "No connected agent could be free"
		return g, nil
	}
	_, bypass := signalbox.QueueBypass(t.Queue)
	if bypass {
		return e.gateOfServers(ctx, g, servers, true)
	}
	able, drained, cure, err := e.splitDrained(ctx, servers)
	if err != nil {
		return g, err
	}
	if len(able) == 0 {
		return drainedGate(drained, cure), nil
	}
	g, err = e.gateOfServers(ctx, g, able, false)
	return g.withDrained(drained), err
}

// gateOfServers is open if one of the connected agents has a free slot.
func (e *Engine) gateOfServers(ctx context.Context, g Gate, servers []LiveAgent, bypass bool) (Gate, error) {
	if full, g := e.fleetGate(); full {
		return g, nil
	}
	var held, closed []string
	for _, a := range servers {
		if a.Closed != nil {
			closed = append(closed, a.Name+": "+a.Closed.String())
			continue
		}
		if bypass {
			a.InUse, a.Slots, a.Held = a.IsolatedInUse, e.bypassSlots(a.IsolatedSlots), a.BackedOff
		}
		if !a.Held && a.InUse < a.Slots {
			g.OK, g.Agent = true, a.Name
			g.Text = "Agent " + a.Name + " is free"
			return g, nil
		}
		if a.Held {
			held = append(held, a.Name+": "+cmp.Or(a.Message, "it has not said that it is free"))
		}
	}
	if len(closed) > 0 && len(closed)+len(held) == len(servers) {
		closed = append(closed, held...)
		g.Text = "Agent " + strings.Join(closed[:min(5, len(closed))], "; agent ")
		g.Detail = "an agent that fails in a way which speaks of itself is given nothing for a while, then tried with one task"
		g.Cure = "Look at its host and its log; it is opened again by itself when it takes a task."
		return g, nil
	}
	if len(held) > 0 && len(held) == len(servers) {
		g.Text = "Offers are withheld"
		g.Detail = strings.Join(held[:min(5, len(held))], "; ")
		g.Cure = "It clears by itself when the agent reports idle; signalbox release NAME forces it."
		return g, nil
	}
	return e.busyGate(ctx, g, servers)
}

// fleetGate is closed while the limit on executions of all agents is reached.
func (e *Engine) fleetGate() (full bool, g Gate) {
	if e.opts.Fleet == 0 {
		return false, g
	}
	running := 0
	for _, a := range e.LiveAgents() {
		if !signalbox.IsExecutor(a.Name) {
			running += a.InUse
		}
	}
	return running >= e.opts.Fleet, Gate{
		Name: "agent_free", Text: fmt.Sprintf("The fleet is at its ceiling: %d of %d executions run", running, e.opts.Fleet),
		Detail: "queue.fleet bounds the executions of all agents together",
		Cure:   "Wait, or raise queue.fleet in the configuration.",
	}
}

// busyGate names the task that has run longest, which will probably free its slot first.
func (e *Engine) busyGate(ctx context.Context, g Gate, servers []LiveAgent) (Gate, error) {
	r, err := e.oldestRun(ctx, servers)
	if err != nil {
		return g, err
	}
	if r.ID == "" {
		g.Text = "The connected agents have no free slot"
		return g, nil
	}
	g.TaskID, g.Agent = r.ID, r.Agent
	g.Text = fmt.Sprintf("Agent %s is busy", r.Agent)
	if len(servers) > 1 {
		g.Text = fmt.Sprintf("All %d connected agents are busy", len(servers))
	}
	g.Detail = fmt.Sprintf("%s has been running %s for %s%s", r.Agent, r.ID, e.since(r.DispatchedAt), e.typicalText(ctx, r.Agent))
	g.Cure = "Wait, or signalbox cancel " + r.ID
	return g, nil
}

// oldestRun returns the task that agents have run longest; the zero task if they run none.
func (e *Engine) oldestRun(ctx context.Context, agents []LiveAgent) (signalbox.Task, error) {
	running, err := e.store.InFlight(ctx)
	for _, t := range running {
		if slices.ContainsFunc(agents, func(a LiveAgent) bool { return a.Name == t.Agent }) {
			return t, err
		}
	}
	return signalbox.Task{}, err
}

func (e *Engine) typicalText(ctx context.Context, agent string) string {
	t := e.Typical(ctx, agent)
	if t == nil {
		return ""
	}
	return fmt.Sprintf("; typical %s–%s", t.Low.Round(time.Second), t.High.Round(time.Second))
}

func gatePosition(t *signalbox.Task, pos store.Position) Gate {
	about := ""
	if pos.Approximate {
		about = "about "
	}
	g := Gate{Name: "position", OK: pos.N <= 1, Text: fmt.Sprintf("Position %s%d in %s", about, pos.N, t.Queue)}
	if g.OK {
		g.Detail = "next to be taken"
	} else {
		g.Detail = fmt.Sprintf("%s%d tasks are before it", about, pos.N-1)
		if pos.N == 2 {
			g.Detail = about + "1 task is before it"
		}
		g.Cure = "Wait, or submit with a higher priority."
	}
	return g
}
