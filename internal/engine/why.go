package engine

import (
	"cmp"
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/signalbox-ai/signalbox"
)

// Why explains why a task has not started.
type Why struct {
	Task    signalbox.Task
	Summary string
	Gates   []Gate // in the order in which they are checked
	ETA     *ETA
}

// Why explains why a task is not running: its gates in order, each with its numbers and, if
// closed, a cure. Page, CLI, API and MCP show the same text. A task that has started or
// ended has no gates.
func (e *Engine) Why(ctx context.Context, id string) (Why, error) {
	t, err := e.store.Task(ctx, id)
	if err != nil {
		return Why{}, err
	}
	w := Why{Task: t}
	if t.State != signalbox.Pending {
		w.Summary = e.stateSummary(t)
		return w, nil
	}
	pos, err := e.store.Position(ctx, id)
	if err != nil {
		return w, err
	}
	for _, gate := range []func(context.Context, *signalbox.Task) (Gate, error){e.gateDue, e.gateOpen, e.gateSession} {
		g, err := gate(ctx, &t)
		if err != nil {
			return w, err
		}
		w.Gates = append(w.Gates, g)
	}
	connected, servers := e.gateConnected(&t)
	w.Gates = append(w.Gates, connected)
	free, err := e.gateFree(ctx, &t, servers)
	if err != nil {
		return w, err
	}
	w.Gates = append(w.Gates, free, gatePosition(&t, pos))
	w.ETA = e.ETA(ctx, &t, pos)
	w.Summary = summary(w)
	return w, nil
}

// stateSummary describes a task that is not pending.
func (e *Engine) stateSummary(t signalbox.Task) string {
	if t.Mode == signalbox.ModeTool {
		return e.toolStateSummary(&t)
	}
	switch t.State {
	case signalbox.Dispatching:
		return fmt.Sprintf("It is being handed to agent %s for %s now.", t.Agent, e.since(t.DispatchedAt))
	case signalbox.Working:
		return fmt.Sprintf("It has been running on agent %s for %s%s.%s", t.Agent, e.since(t.StartedAt), e.notConnected(t.Agent), e.troubleText(&t))
	case signalbox.Cancelling:
		return fmt.Sprintf("It is being cancelled; agent %s has not confirmed yet%s. signalbox release %s takes the slot away from it.", t.Agent, e.notConnected(t.Agent), t.Agent)
	}
	return fmt.Sprintf("It has ended: %s (%s).", t.State, t.Message)
}

// Trouble is what keeps a task from making progress; "" for nothing. For a running task it
// is what its agent reports, such as that its model answers 529; for a waiting one, that
// the agent of its conversation is gone, and what happens then.
func (e *Engine) Trouble(t *signalbox.Task) string {
	if t.State == signalbox.Pending {
		return e.holderGone(t)
	}
	if t.State != signalbox.Working {
		return ""
	}
	a, _ := e.LiveAgent(t.Agent)
	return a.Notes[t.ID]
}

func (e *Engine) troubleText(t *signalbox.Task) string {
	if text := e.Trouble(t); text != "" {
		return " The agent says: " + strings.TrimRight(text, ".") + "."
	}
	return ""
}

// notConnected notes that the agent is not connected: what it ran may no longer be running.
func (e *Engine) notConnected(agent string) string {
	a, known := e.LiveAgent(agent)
	if !known || a.Up {
		return ""
	}
	return fmt.Sprintf("; the agent is not connected (%s)", cmp.Or(a.Message, "not heard from"))
}

func (e *Engine) since(at time.Time) time.Duration {
	return max(0, e.Now().Sub(at)).Round(time.Second)
}

func summary(w Why) string {
	for _, g := range w.Gates {
		if !g.OK {
			return "It waits: " + g.Text + "."
		}
	}
	return "It starts at once."
}

// WaitExplainer is a Live that knows what a task in flight still waits for: a tool call
// that has a slot of the executor may be waiting in its tool queue.
type WaitExplainer interface {
	// WaitsFor returns a sentence without its full stop; "" if it waits for nothing known.
	WaitsFor(id string) string
}

func (e *Engine) waitsFor(id string) (text string) {
	for _, l := range e.live {
		if w, ok := l.(WaitExplainer); ok {
			text = cmp.Or(text, w.WaitsFor(id))
		}
	}
	return text
}

// toolStateSummary is stateSummary for a tool call.
func (e *Engine) toolStateSummary(t *signalbox.Task) string {
	switch t.State {
	case signalbox.Dispatching:
		if text := e.waitsFor(t.ID); text != "" {
			return fmt.Sprintf("It waits: %s, for %s.", text, e.since(t.DispatchedAt))
		}
		return fmt.Sprintf("It has a slot of %s and is about to run, for %s.", t.Agent, e.since(t.DispatchedAt))
	case signalbox.Working:
		return fmt.Sprintf("It is running for %s.", e.since(t.StartedAt))
	case signalbox.Cancelling:
		return "It is being cancelled; it ends when nothing of its run lives."
	}
	return fmt.Sprintf("It has ended: %s (%s).", t.State, t.Message)
}

// slotNoun names the slots that serve a queue of tool calls.
func slotNoun(queue string) string {
	if queue == signalbox.QueueCommands {
		return "command slots"
	}
	return "slots for tool calls"
}

// isToolQueue reports whether the director's own executor serves a queue.
func isToolQueue(queue string) bool {
	return queue == signalbox.QueueCommands || queue == signalbox.QueueCalls
}

// toolConnected is gateConnected for a queue of tool calls.
func (e *Engine) toolConnected(t *signalbox.Task) (Gate, []LiveAgent) {
	var up []LiveAgent
	for _, a := range e.LiveAgents() {
		if a.Up && a.Serves(t.Queue) {
			up = append(up, a)
		}
	}
	if len(up) > 0 {
		return Gate{Name: "agent_connected", OK: true, Text: "The director itself runs tool calls", Detail: "by " + up[0].Name}, up
	}
	return Gate{Name: "agent_connected", Text: "No director runs tool calls now", Cure: "Start one whose configuration has the tool " + t.Tool + ", or wait until it has started."}, nil
}

// toolFree is gateFree for a queue of tool calls.
func (e *Engine) toolFree(ctx context.Context, t *signalbox.Task, servers []LiveAgent) (Gate, error) {
	g, used, slots, noun := Gate{Name: "agent_free"}, 0, 0, slotNoun(t.Queue)
	for _, a := range servers {
		used, slots = used+a.InUse, slots+a.Slots
	}
	switch {
	case slots == 0:
		g.Text = "No director to have " + noun
		return g, nil
	case used < slots:
		g.OK, g.Text = true, fmt.Sprintf("%d of %d %s are free", slots-used, slots, noun)
		return g, nil
	}
	g.Text = fmt.Sprintf("All %d %s are in use", slots, noun)
	g.Cure = "Wait, or cancel one of the calls that run"
	if t.Queue == signalbox.QueueCommands {
		g.Cure += ", or raise commands.max_concurrent"
	}
	g.Cure += "."
	r, err := e.oldestRun(ctx, servers)
	if err == nil && r.ID != "" {
		g.TaskID = r.ID
		g.Detail = fmt.Sprintf("the oldest is %s (%s), for %s%s", r.ID, r.Tool, e.since(r.DispatchedAt), e.typicalText(ctx, r.Agent))
	}
	return g, err
}
