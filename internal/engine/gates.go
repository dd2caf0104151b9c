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

func (e *Engine) gateDue(t *signalbox.Task) Gate {
	wait := t.NotBefore.Sub(e.Now())
	if wait <= 0 {
		return Gate{Name: "due", OK: true, Text: "Task is due", Detail: fmt.Sprintf("created %s ago (%s)", e.since(t.CreatedAt), t.Source)}
	}
	g := Gate{Name: "due", Text: fmt.Sprintf("Task is due in %s", wait.Round(time.Second)), Cure: "It is tried again by itself."}
	switch {
	case t.Attempts > 0:
		g.Detail = fmt.Sprintf("attempt %d of %d failed: %s", t.Attempts, t.MaxAttempts, t.LastError)
	case t.NoAnswers > 0:
		g.Detail = "its last offer failed: " + t.LastError
	default:
		g.Detail, g.Cure = "not before "+t.NotBefore.Format(time.RFC3339), "Wait, or cancel it and submit it without not_before."
	}
	return g
}

func (e *Engine) gateOpen(t *signalbox.Task, pauses []signalbox.Pause) Gate {
	g := Gate{Name: "queue_open", OK: true, Text: "Queue is open", Detail: t.Queue + " is not paused"}
	for i := range pauses {
		if p := &pauses[i]; p.Queue == "" || p.Queue == t.Queue {
			g.OK, g.Text = false, fmt.Sprintf("Queue is paused: %s, %s", cmp.Or(p.Queue, "every queue"), e.pausedBy(p))
			g.Detail, g.Cure = cmp.Or(p.Reason, "no reason was given"), strings.TrimSpace("signalbox resume "+p.Queue)
		}
	}
	return g
}

func (e *Engine) pausedBy(p *signalbox.Pause) string {
	return fmt.Sprintf("by %s for %s", cmp.Or(p.By, "someone"), e.since(time.UnixMilli(p.AtMS)))
}

func (e *Engine) gateSession(ctx context.Context, t *signalbox.Task) (Gate, error) {
	g := Gate{Name: "session_free", OK: true, Text: "Session is free", Detail: "it belongs to no session"}
	if t.SessionID == "" {
		return g, nil
	}
	g.Detail = "no other turn of session " + t.SessionID + " is before it"
	turns, err := e.store.SessionTasks(ctx, t.SessionID, 2)
	for _, other := range turns {
		if other.ID != t.ID && (other.State != signalbox.Pending || other.Ready) {
			g = Gate{
				Name: g.Name, Text: fmt.Sprintf("Session %s has another turn before it", t.SessionID), TaskID: other.ID,
				Detail: fmt.Sprintf("%s is %s; one turn of a session runs at a time", other.ID, other.State), Cure: "Wait for it, or signalbox cancel " + other.ID,
			}
		}
	}
	return g, err
}

// gateConnected also returns the connected agents that serve the task's queue.
func (e *Engine) gateConnected(t *signalbox.Task) (Gate, []LiveAgent) {
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
	case g.OK && isToolQueue(t.Queue):
		g.Text, g.Detail = "The director itself runs tool calls", "by "+up[0].Name
	case isToolQueue(t.Queue):
		g.Text, g.Cure = "No director runs tool calls now", "Start one whose configuration has the tool "+t.Tool+", or wait until it has started."
	case g.OK && one:
		g.Text = "Agent " + name + " is connected"
	case g.OK:
		g.Text = fmt.Sprintf("%d of %d agents that serve %s are connected", len(up), len(up)+len(down), t.Queue)
	case len(down) > 0:
		g.Text, g.Detail = "No agent that serves "+t.Queue+" is connected", "gone: "+strings.Join(down[:min(5, len(down))], ", ")
		g.Cure = "Start the agent again; signalbox agents shows where it was."
	default:
		g.Text, g.Cure = "No agent serves "+t.Queue, "Start one: signalbox agent --director URL"
	}
	if one {
		g.Agent = name
	}
	if gone := e.holderGone(t); gone != "" {
		g.Text = upperFirst(gone)
	}
	return g, up
}

// gateFree is open if one of the connected agents has a free slot.
func (e *Engine) gateFree(ctx context.Context, t *signalbox.Task, servers []LiveAgent, pauses []signalbox.Pause) (Gate, error) {
	if isToolQueue(t.Queue) {
		return e.gateToolSlot(ctx, t, servers)
	}
	if len(servers) == 0 {
		return Gate{Name: "agent_free", Text: "No connected agent could be free"}, nil
	}
	if _, bypass := signalbox.QueueBypass(t.Queue); bypass {
		for i := range servers {
			a := &servers[i]
			a.InUse, a.Slots, a.Held = a.IsolatedInUse, e.bypassSlots(a.IsolatedSlots), a.BackedOff
		}
		return e.gateSlot(ctx, servers)
	}
	var able []LiveAgent
	var drained []string
	cure := ""
	for _, a := range servers {
		p := drain(pauses, a.Name)
		if p == nil {
			able = append(able, a)
			continue
		}
		text := a.Name + " is paused " + e.pausedBy(p)
		if p.Reason != "" {
			text += " (" + p.Reason + ")"
		}
		drained, cure = append(drained, text), cmp.Or(cure, "signalbox resume "+p.Queue)
	}
	if len(able) > 0 {
		g, err := e.gateSlot(ctx, able)
		if !g.OK && len(drained) > 0 { // more agents would take the task
			g.Detail = strings.TrimPrefix(g.Detail+"; "+joinFirst(drained), "; ")
		}
		return g, err
	}
	g := Gate{Name: "agent_free", Text: drained[0] + ": it takes from no queue", Cure: cure}
	if len(drained) > 1 {
		g.Text, g.Detail = fmt.Sprintf("All %d connected agents are paused: they take from no queue", len(drained)), joinFirst(drained)
	}
	return g, nil
}

// joinFirst joins the first five entries, and says how many more there are.
func joinFirst(list []string) string {
	text := strings.Join(list[:min(5, len(list))], "; ")
	if more := len(list) - 5; more > 0 {
		text += fmt.Sprintf("; and %d more", more)
	}
	return text
}

// gateSlot is open if one of the agents has a free slot and may get work. Else it names the
// task that has run longest, which will probably free its slot first.
func (e *Engine) gateSlot(ctx context.Context, servers []LiveAgent) (Gate, error) {
	g := Gate{Name: "agent_free"}
	if running := e.fleetInUse(); e.opts.Fleet > 0 && running >= e.opts.Fleet {
		g.Text = fmt.Sprintf("The fleet is at its ceiling: %d of %d executions run", running, e.opts.Fleet)
		g.Detail, g.Cure = "queue.fleet bounds the executions of all agents together", "Wait, or raise queue.fleet in the configuration."
		return g, nil
	}
	var held, closed []string
	all := !slices.ContainsFunc(servers, func(a LiveAgent) bool { return a.Closed == nil }) // then that is its own gate
	for _, a := range servers {
		switch {
		case a.Closed != nil && !all:
			closed = append(closed, a.Closed.String())
		case a.Held && !all:
			held = append(held, a.Name+": "+cmp.Or(a.Message, "it has not said that it is free"))
		case a.InUse < a.Slots:
			return Gate{Name: g.Name, OK: true, Agent: a.Name, Text: "Agent " + a.Name + " is free"}, nil
		}
	}
	if len(held) > 0 && len(held)+len(closed) == len(servers) {
		g.Text, g.Detail = "Offers are withheld", joinFirst(append(held, closed...))
		g.Cure = "It clears by itself when the agent reports idle; signalbox release NAME forces it."
		return g, nil
	}
	r, err := e.oldestRun(ctx, servers)
	if err != nil || r.ID == "" {
		g.Text = "The connected agents have no free slot"
		return g, err
	}
	g.TaskID, g.Agent, g.Text = r.ID, r.Agent, "Agent "+r.Agent+" is busy"
	if len(servers) > 1 {
		g.Text = fmt.Sprintf("All %d connected agents are busy", len(servers))
	}
	g.Detail = fmt.Sprintf("%s has been running %s for %s%s", r.Agent, r.ID, e.since(r.DispatchedAt), e.typicalText(ctx, r.Agent))
	g.Cure = "Wait, or signalbox cancel " + r.ID
	return g, nil
}

// fleetInUse counts the executions that Options.Fleet bounds.
func (e *Engine) fleetInUse() (running int) {
	for _, a := range e.LiveAgents() {
		if !signalbox.IsExecutor(a.Name) {
			running += a.InUse
		}
	}
	return running
}

// gateToolSlot is gateFree for a queue of tool calls.
func (e *Engine) gateToolSlot(ctx context.Context, t *signalbox.Task, servers []LiveAgent) (Gate, error) {
	g, used, slots, noun := Gate{Name: "agent_free"}, 0, 0, "slots for tool calls"
	g.Cure = "Wait, or cancel one of the calls that run."
	if t.Queue == signalbox.QueueCommands {
		noun, g.Cure = "command slots", "Wait, or cancel one of the calls that run, or raise commands.max_concurrent."
	}
	for _, a := range servers {
		used, slots = used+a.InUse, slots+a.Slots
	}
	switch {
	case slots == 0:
		return Gate{Name: g.Name, Text: "No director to have " + noun}, nil
	case used < slots:
		return Gate{Name: g.Name, OK: true, Text: fmt.Sprintf("%d of %d %s are free", slots-used, slots, noun)}, nil
	}
	g.Text = fmt.Sprintf("All %d %s are in use", slots, noun)
	r, err := e.oldestRun(ctx, servers)
	if err == nil && r.ID != "" {
		g.TaskID = r.ID
		g.Detail = fmt.Sprintf("the oldest is %s (%s), for %s%s", r.ID, r.Tool, e.since(r.DispatchedAt), e.typicalText(ctx, r.Agent))
	}
	return g, err
}

// isToolQueue reports whether the director's own executor serves a queue.
func isToolQueue(queue string) bool {
	return queue == signalbox.QueueCommands || queue == signalbox.QueueCalls
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
	g := Gate{Name: "position", OK: pos.N <= 1, Text: fmt.Sprintf("Position %s%d in %s", about, pos.N, t.Queue), Detail: "next to be taken"}
	if !g.OK {
		g.Detail, g.Cure = fmt.Sprintf("%s%d tasks are before it", about, pos.N-1), "Wait, or submit with a higher priority."
	}
	if pos.N == 2 {
		g.Detail = about + "1 task is before it"
	}
	return g
}
