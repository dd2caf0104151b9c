package engine

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/signalbox-ai/signalbox"
)

// Why says what stands between a task and its start.
type Why struct {
	Task    signalbox.Task
	Summary string
	Gates   []Gate // in the order in which they are passed
	ETA     *ETA
}

// Why explains why a task is not running: its gates in order, each with its
// numbers and, where it is shut, a cure. Page, CLI, API and MCP show the
// same text. A task that has started or ended has no gates.
func (e *Engine) Why(ctx context.Context, id string) (Why, error) {
	t, err := e.store.Task(ctx, id)
	if err != nil {
		return Why{}, err
	}
	w := Why{Task: t}
	if t.State != signalbox.Pending {
		w.Summary = e.standing(t)
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

// standing describes a task that no longer waits.
func (e *Engine) standing(t signalbox.Task) string {
	if t.Mode == signalbox.ModeTool {
		return e.toolStanding(&t)
	}
	switch t.State {
	case signalbox.Dispatching:
		return fmt.Sprintf("It is being handed to agent %s for %s now.", t.Agent, e.since(t.DispatchedAt))
	case signalbox.Working:
		return fmt.Sprintf("It has been running on agent %s for %s%s.%s", t.Agent, e.since(t.StartedAt), e.silence(t.Agent), e.trouble(&t))
	case signalbox.Cancelling:
		return fmt.Sprintf("It is being cancelled; agent %s has not confirmed yet%s. signalbox release %s takes the slot away from it.", t.Agent, e.silence(t.Agent), t.Agent)
	}
	return fmt.Sprintf("It has ended: %s (%s).", t.State, t.Message)
}

// Trouble is what keeps a task from going on, "" for nothing: of a running one what
// its agent says, such as that its model answers 529; of a waiting one that the
// agent of its conversation is gone, and what happens then.
func (e *Engine) Trouble(t *signalbox.Task) string {
	if t.State == signalbox.Pending {
		return e.gone(t)
	}
	if t.State != signalbox.Working {
		return ""
	}
	a, _ := e.live.LiveAgent(t.Agent)
	return a.Notes[t.ID]
}

func (e *Engine) trouble(t *signalbox.Task) string {
	if text := e.Trouble(t); text != "" {
		return " The agent says: " + strings.TrimRight(text, ".") + "."
	}
	return ""
}

// silence says that an agent is not connected: what it ran when it was last
// heard may not run any more.
func (e *Engine) silence(agent string) string {
	a, known := e.live.LiveAgent(agent)
	if !known || a.Up {
		return ""
	}
	return fmt.Sprintf("; the agent is not connected (%s)", or(a.Message, "not heard from"))
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

func or(s, otherwise string) string {
	if s == "" {
		return otherwise
	}
	return s
}
