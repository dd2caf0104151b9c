package engine

import (
	"context"
	"fmt"
	"slices"

	"github.com/signalbox-ai/signalbox"
)

// Teller is a Live that can say what a task in flight still waits for: a tool
// call that has a slot of the executor may stand in line of its tool queue.
type Teller interface {
	// WaitsFor returns a sentence without its end, "" where it waits for nothing
	// that is known.
	WaitsFor(id string) string
}

// WaitsFor implements Teller.
func (l lives) WaitsFor(id string) string {
	for _, one := range l {
		if t, ok := one.(Teller); ok {
			if text := t.WaitsFor(id); text != "" {
				return text
			}
		}
	}
	return ""
}

// toolStanding describes a tool call that no longer waits in its queue.
func (e *Engine) toolStanding(t *signalbox.Task) string {
	switch t.State {
	case signalbox.Dispatching:
		if teller, ok := e.live.(Teller); ok {
			if text := teller.WaitsFor(t.ID); text != "" {
				return fmt.Sprintf("It waits: %s, for %s.", text, e.since(t.DispatchedAt))
			}
		}
		return fmt.Sprintf("It has a slot of %s and is about to run, for %s.", t.Agent, e.since(t.DispatchedAt))
	case signalbox.Working:
		return fmt.Sprintf("It is running for %s.", e.since(t.StartedAt))
	case signalbox.Cancelling:
		return "It is being cancelled; it ends when nothing of its run lives."
	}
	return fmt.Sprintf("It has ended: %s (%s).", t.State, t.Message)
}

// slotWords names the slots that serve a queue of tool calls.
func slotWords(queue string) string {
	if queue == signalbox.QueueCommands {
		return "command slots"
	}
	return "slots for tool calls"
}

// ofTools reports whether the director's own executor serves a queue.
func ofTools(queue string) bool {
	return queue == signalbox.QueueCommands || queue == signalbox.QueueCalls
}

// toolConnected is gateConnected for a queue of tool calls.
func (e *Engine) toolConnected(t *signalbox.Task) (Gate, []LiveAgent) {
	var up []LiveAgent
	for _, a := range e.live.Agents() {
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
	g, used, slots, words := Gate{Name: "agent_free"}, 0, 0, slotWords(t.Queue)
	for _, a := range servers {
		used, slots = used+a.InUse, slots+a.Slots
	}
	switch {
	case slots == 0:
		g.Text = "No director to have " + words
		return g, nil
	case used < slots:
		g.OK, g.Text = true, fmt.Sprintf("%d of %d %s are free", slots-used, slots, words)
		return g, nil
	}
	g.Text = fmt.Sprintf("All %d %s are in use", slots, words)
	g.Cure = "Wait, or cancel one of the calls that run"
	if t.Queue == signalbox.QueueCommands {
		g.Cure += ", or raise commands.max_concurrent"
	}
	g.Cure += "."
	running, err := e.store.InFlight(ctx)
	if err != nil {
		return g, err
	}
	for _, r := range running {
		if !slices.ContainsFunc(servers, func(a LiveAgent) bool { return a.Name == r.Agent }) {
			continue
		}
		g.TaskID = r.ID
		g.Detail = fmt.Sprintf("the oldest is %s (%s), for %s", r.ID, r.Tool, e.since(r.DispatchedAt)) + typical(e.runs.of(ctx, r.Agent))
		break
	}
	return g, nil
}
