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
	GateBudget  GateKind = "budget"  // the budget Gate.Name of the day is used up; it parks no task
)

// Gate is what keeps a task from going on. Design §9.
type Gate struct {
	Kind  GateKind
	Name  string    // of the account
	Text  string    // for people, without a full stop
	Until time.Time // when it opens by itself, as was known when the task was parked; zero: not by time
}

// String says what keeps a task that is parked, as was known when it was.
func (g *Gate) String() string {
	text := "it waits"
	switch g.Kind {
	case GateAccount:
		text = "account " + g.Name + " is closed"
	case GateTime:
		text = "it is tried again"
	}
	if !g.Until.IsZero() {
		text += map[GateKind]string{GateAccount: " until ", GateTime: " at "}[g.Kind] + g.Until.UTC().Format(time.RFC3339)
	}
	if g.Text != "" {
		text += " (" + g.Text + ")"
	}
	return text
}

// Parking is how a task was parked and goes on.
type Parking struct {
	Gate
	At time.Time
	// Count is how often it was parked, at most MaxParks.
	Count int
	// Next is the next turn of its conversation; "": the agent's own words for "go on".
	Next string
	// Began says that its runs had done something. Then they go on in their conversation,
	// or not at all.
	Began bool
}

// Bounds on parking.
const (
	MaxParks    = 100
	MaxGateText = 300 // bytes
)

// park ends a run that cannot go on now: its slot is free, it costs no attempt, and when the
// gate opens it is the first of its queue, that of the agent which has its conversation. A
// task that is being stopped ends instead.
func park(c *Change, ev Event) error {
	t := &c.Task
	if ev.Parking == nil || ev.Parking.Kind == "" {
		return Errorf(CodeConflict, "task %s: it is not said what it is parked for", t.ID)
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

// unpark lets a task go on, of its own accord or, with Event.Anyway, as someone asked for:
// then also one that waits behind an account which is not open or a budget that is used up.
func unpark(c *Change, ev Event) error {
	t := &c.Task
	if t.State == Pending && !ev.Anyway {
		return Errorf(CodeConflict, "task %s is not parked", t.ID)
	}
	t.State, t.Anyway, c.Order = Pending, ev.Anyway, OrderTop
	c.Entry.Message = cmp.Or(ev.Message, "its gate has opened")
	if ev.Anyway {
		c.Entry.Message = "it runs though its account or a budget would keep it, as was asked for" + by(ev.By)
	}
	return nil
}
