package engine

import (
	"cmp"
	"context"
	"fmt"
	"slices"
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
	NoETA   string // of a pending task without an ETA: why there is none
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
		if t.State == signalbox.Parked {
			w.Gates = []Gate{e.gateClosed(&t)}
		}
		return w, nil
	}
	pos, err := e.store.Position(ctx, id)
	pauses, err2 := e.pauses(ctx)
	session, err3 := e.gateSession(ctx, &t)
	if err := cmp.Or(err, err2, err3); err != nil {
		return w, err
	}
	if pos, err = e.withoutParked(ctx, &t, pos); err != nil {
		return w, err
	}
	connected, servers := e.gateConnected(&t)
	free, err := e.gateFree(ctx, &t, servers, pauses)
	held, err2 := e.gateHolds(ctx, &t, servers)
	if err := cmp.Or(err, err2); err != nil {
		return w, err
	}
	w.Gates = []Gate{e.gateDue(&t), e.gateOpen(&t, pauses), session, connected, free, gatePosition(&t, pos)}
	if slices.ContainsFunc(servers, func(a LiveAgent) bool { return a.Account != "" || a.Closed != nil }) {
		w.Gates = slices.Insert(w.Gates, 4, e.gateClosed(&t))
	}
	if held != nil {
		w.Gates = slices.Insert(w.Gates, len(w.Gates)-2, *held)
	}
	if e.opts.Budgets.Daily() {
		w.Gates = slices.Insert(w.Gates, len(w.Gates)-2, e.gateBudget(&t))
	}
	if w.ETA = e.ETA(ctx, &t, pos); w.ETA == nil {
		w.NoETA = e.whyNoETA(ctx, &t)
	}
	w.Summary = "It starts at once."
	if i := slices.IndexFunc(w.Gates, func(g Gate) bool { return !g.OK }); i >= 0 {
		w.Summary = "It waits: " + w.Gates[i].Text + "."
	}
	return w, nil
}

// stateSummary describes a task that is not pending.
func (e *Engine) stateSummary(t signalbox.Task) string {
	tool := t.Mode == signalbox.ModeTool
	switch {
	case t.State == signalbox.Dispatching && tool:
		if text := e.waitsFor(t.ID); text != "" {
			return fmt.Sprintf("It waits: %s, for %s.", text, e.since(t.DispatchedAt))
		}
		return fmt.Sprintf("It has a slot of %s and is about to run, for %s.", t.Agent, e.since(t.DispatchedAt))
	case t.State == signalbox.Dispatching:
		return fmt.Sprintf("It is being handed to agent %s for %s now.", t.Agent, e.since(t.DispatchedAt))
	case t.State == signalbox.Working && tool:
		return fmt.Sprintf("It is running for %s.", e.since(t.StartedAt))
	case t.State == signalbox.Working:
		return fmt.Sprintf("It has been running on agent %s for %s%s.%s", t.Agent, e.since(t.StartedAt), e.notConnected(t.Agent), e.troubleText(&t))
	case t.State == signalbox.Cancelling && tool:
		return "It is being cancelled; it ends when nothing of its run lives."
	case t.State == signalbox.Cancelling:
		return fmt.Sprintf("It is being cancelled; agent %s has not confirmed yet%s. signalbox release %s takes the slot away from it.", t.Agent, e.notConnected(t.Agent), t.Agent)
	}
	if t.State == signalbox.Parked {
		return fmt.Sprintf("It was parked %s ago and goes on where it stopped: %s.", e.since(t.Parking.At), e.WaitsAt(&t).Text)
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

// holderGone explains what will happen to a waiting task of a conversation whose agent is
// not connected, and when; "" for other tasks. ResolveStranded and EndOverdue implement it.
func (e *Engine) holderGone(t *signalbox.Task) string {
	name, one := signalbox.QueueAgent(t.Queue)
	if t.State != signalbox.Pending || t.SessionID == "" || !one {
		return ""
	}
	a, _ := e.LiveAgent(name)
	if a.Up {
		return ""
	}
	who := fmt.Sprintf("agent %s, which holds conversation %s,", name, t.SessionID)
	if t.SessionMode == "" {
		who = fmt.Sprintf("agent %s, for which the task is,", name)
	}
	absent := "is not connected"
	if !a.DownSince.IsZero() {
		absent = "has been gone since " + instant(a.DownSince)
	}
	return fmt.Sprintf("%s %s; %s", who, absent, e.afterGone(t, a.StrandedAt))
}

// afterGone says what happens to a task whose agent is gone. strandedAt is when
// ResolveStranded acts; zero: another director decides.
func (e *Engine) afterGone(t *signalbox.Task, strandedAt time.Time) string {
	if !t.WaitUntil.IsZero() && (t.SessionMode == "" || strandedAt.IsZero() || t.WaitUntil.Before(strandedAt)) {
		return fmt.Sprintf("the task waits for it until %s, then ends with wait_timeout", instant(t.WaitUntil))
	}
	at := "at " + instant(strandedAt)
	switch {
	case strandedAt.IsZero():
		at = "once it has been gone for session_grace"
	case !strandedAt.After(e.Now()):
		at = "now"
	}
	switch t.SessionMode {
	case signalbox.SessionRequire:
		return fmt.Sprintf("unless it is back, the task fails %s (dispatch_failed)", at)
	case signalbox.SessionPrefer:
		return fmt.Sprintf("unless it is back, the task goes %s to the queue %s, where any agent takes it", at, signalbox.QueueWork)
	}
	return "the task waits until it is back"
}

func instant(at time.Time) string { return at.UTC().Format(time.RFC3339) }
