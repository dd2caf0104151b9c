package signalbox

import (
	"cmp"
	"fmt"
	"time"
)

// GateKind says what a task waits for.
type GateKind string

// The kinds of gates.
const (
	GateAccount GateKind = "account" // the account Gate.Name is closed
	GateTime    GateKind = "time"    // Gate.Until
	GateAgent   GateKind = "agent"   // the agent Gate.Name is closed because it failed; parks no task
	GateTool    GateKind = "tool"    // the tool queue Gate.Name is closed by its upstream; parks no task
	GateBudget  GateKind = "budget"  // the daily budget Gate.Name is used up; parks no task
)

// Gate is a condition that blocks a task. Design §9.
type Gate struct {
	Kind  GateKind
	Name  string    // of the account, agent, budget or tool queue
	Text  string    // for people, without a full stop
	Until time.Time // when it opens by itself or is tried, as far as known; zero: it does not open by time
}

// GateRef identifies a gate; the zero GateRef identifies none.
type GateRef struct {
	Kind GateKind
	Name string
}

// Ref returns the reference of the gate.
func (g *Gate) Ref() GateRef { return GateRef{g.Kind, g.Name} }

// ClosedGate is a gate that is closed now.
type ClosedGate struct {
	Gate
	Since    time.Time // when it was closed; for a parked task: when the task was parked
	Failures int       // for GateAgent: failures in a row
}

// String describes the gate in one sentence, without a full stop. The gate of a parked task
// says what was known when the task was parked.
func (g *Gate) String() string {
	text := "it waits"
	switch g.Kind {
	case GateAccount:
		text = "account " + g.Name + " is closed"
	case GateTool:
		text = "tool queue " + g.Name + " is closed"
	case GateTime:
		text = "it is tried again"
	case GateAgent:
		text = "agent " + g.Name + " is closed"
		if g.Until.IsZero() {
			text = "agent " + g.Name + " is being tried: one task goes first"
		}
	}
	if !g.Until.IsZero() {
		text += map[bool]string{false: " until ", true: " at "}[g.Kind == GateTime] + g.Until.UTC().Format(time.RFC3339)
	}
	if g.Text != "" {
		text += " (" + g.Text + ")"
	}
	return text
}

// Parking says how a task was parked and how it continues.
type Parking struct {
	Gate
	At time.Time
	// Count is how often it was parked, at most MaxParks.
	Count int
	// Next is the prompt of the next turn of its conversation; "": the agent's own words for
	// "go on".
	Next string
	// Began says that its runs have done something. Then the task can only continue in its
	// conversation.
	Began bool
}

// Bounds on parking.
const (
	MaxParks    = 100
	MaxGateText = 300 // bytes
)

// park ends a run that cannot continue now. Its slot becomes free, and it costs no attempt. When
// the gate opens, the task is first in the queue of the agent that has its conversation. A task
// that is being stopped ends instead.
func park(c *Change, ev Event) error {
	t := &c.Task
	if ev.Parking == nil || ev.Parking.Kind == "" {
		return Errorf(CodeConflict, "task %s: it cannot be parked without a gate", t.ID)
	}
	bind(c, ev.SessionID)
	leave(c, ev.Result)
	if t.CancelRequested {
		return endCancelled(c, ev)
	}
	p := *ev.Parking
	p.At, p.Text = latest(ev.Now, t.DispatchedAt), clip(p.Text, MaxGateText)
	p.Count = 1
	if was := t.Parking; was != nil {
		p.Count, p.Began = was.Count+1, p.Began || was.Began
	}
	if over := t.OverBudget(t.Spent); over != "" {
		return end(c, ev, ReasonBudget, over)
	}
	if p.Count > MaxParks {
		return end(c, ev, ReasonAgentError, fmt.Sprintf("it was parked %d times, which is the most: %s", MaxParks, p.Text))
	}
	t.Parking, t.LastError = &p, p.Text
	t.NotBefore, t.WaitUntil = time.Time{}, time.Time{}
	if t.SessionID != "" {
		t.Queue = AgentQueue(t.Agent)
	}
	c.Order = OrderTop
	if err := toPending(c, ev); err != nil {
		return err
	}
	t.State = Parked
	return nil
}

// unpark lets a parked task continue because its gate opened. With Event.IgnoreGates someone asked
// for it, and it also releases a task that waits for an account or a budget.
func unpark(c *Change, ev Event) error {
	t := &c.Task
	if t.State == Pending && !ev.IgnoreGates {
		return Errorf(CodeConflict, "task %s is not parked", t.ID)
	}
	t.State, t.IgnoreGates, c.Order = Pending, ev.IgnoreGates, OrderTop
	c.Entry.Message = cmp.Or(ev.Message, "its gate has opened")
	if ev.IgnoreGates {
		c.Entry.Message = "it runs although its account or a budget would hold it, as requested" + by(ev.By)
	}
	return nil
}
