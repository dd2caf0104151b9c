// Package gates lists what is closed now, and what waits there: accounts, agents, budgets, tool queues, and
// times until which tasks are parked. It reads no clock.
package gates

import (
	"cmp"
	"context"
	"fmt"
	"iter"
	"slices"
	"strings"
	"time"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/internal/budget"
	"github.com/signalbox-ai/signalbox/internal/engine"
	"github.com/signalbox-ai/signalbox/toolqueue"
)

// Closed is a closed gate, as shown to people.
type Closed struct {
	signalbox.ClosedGate        // its Text is the whole sentence
	State                string // closed, trying (one task goes first) or signed_out (a person must log in)
	Source               string // how that is known, as in signalbox.Account; "": unknown
	Cure                 string // what a person can do
	Load
	Agents []string // callers that may use none of these do not see the gate; nil: all see it
}

// Tasks is how many tasks wait there.
func (c *Closed) Tasks() int { return c.Parked + c.Waiting }

// VisibleTo reports whether a caller may see the gate.
func (c *Closed) VisibleTo(who signalbox.Principal) bool {
	return c.Agents == nil || !who.Limited() || slices.ContainsFunc(c.Agents, who.MayUse)
}

// Now is the current state from which gates are derived.
type Now struct {
	At       time.Time
	Accounts []signalbox.Account
	Agents   iter.Seq[*engine.LiveAgent]
	Parked   []signalbox.Task // only Queue and Parking are used
	Budgets  []budget.Row
	Tools    []toolqueue.Status
	Loads    map[signalbox.GateRef]Load
}

// sources are the kinds of gates.
var sources = []func(*Now) []Closed{accountGates, agentGates, budgetGates, toolGates, timeGates}

// List returns the closed gates: first those that need a person, then those at which tasks wait; within
// these, those that open first.
func List(n *Now) (all []Closed) {
	for _, of := range sources {
		all = append(all, of(n)...)
	}
	for i := range all {
		if load, known := n.Loads[all[i].Ref()]; known {
			all[i].Load = load
		}
	}
	slices.SortFunc(all, func(a, b Closed) int {
		return cmp.Or(rank(&a)-rank(&b), a.Until.Compare(b.Until), cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Name, b.Name))
	})
	return all
}

func rank(c *Closed) int {
	switch {
	case c.State == string(signalbox.AccountSignedOut):
		return 0
	case c.Tasks() > 0:
		return 1
	}
	return 2
}

// Read reads the current state. tools are the tool queues of this process.
func Read(ctx context.Context, e *engine.Engine, tools []toolqueue.Status) (*Now, error) {
	rows, err1 := e.Accounts(ctx)
	parked, err2 := e.Read().Parked(ctx, "", "")
	counts, err3 := e.Read().Counts(ctx)
	agents := e.LiveAgents()
	return &Now{
		At: e.Now(), Accounts: rows, Parked: parked, Budgets: e.Budgets().Rows(e.Now()), Tools: tools, Loads: Loads(parked, counts.Queues, e.QueueWaitsAt),
		Agents: func(yield func(*engine.LiveAgent) bool) {
			for i := range agents {
				if !yield(&agents[i]) {
					return
				}
			}
		},
	}, cmp.Or(err1, err2, err3)
}

func accountGates(n *Now) (all []Closed) {
	for i := range n.Accounts {
		a := &n.Accounts[i]
		if a.State == "" || a.State == signalbox.AccountOpen {
			continue
		}
		c := Closed{State: string(a.State), Source: a.Source, Cure: "signalbox accounts open " + a.Name, Agents: []string{}}
		c.Gate, c.Since = signalbox.Gate{Kind: signalbox.GateAccount, Name: a.Name, Text: a.String(), Until: a.Until}, a.Since
		for agent := range n.Agents {
			if agent.Account == a.Name {
				c.Agents = append(c.Agents, agent.Name)
			}
		}
		slices.Sort(c.Agents)
		switch a.State {
		case signalbox.AccountSignedOut:
			c.Cure = fmt.Sprintf("log in again where %s, then %s", runsAt(c.Agents), c.Cure)
		case signalbox.AccountTrying:
			c.Cure = "it opens by itself when its provider answers; " + c.Cure + " lets all tasks go at once"
		}
		all = append(all, c)
	}
	return all
}

// runsAt names agents, at most three.
func runsAt(agents []string) string {
	switch n := len(agents); {
	case n == 0:
		return "its agents run"
	case n == 1:
		return "agent " + agents[0] + " runs"
	case n > 3:
		return fmt.Sprintf("agents %s and %d more run", strings.Join(agents[:3], ", "), n-3)
	}
	return "agents " + strings.Join(agents, ", ") + " run"
}

func agentGates(n *Now) (all []Closed) {
	for a := range n.Agents {
		if a.Closed == nil || !a.Up {
			continue
		}
		c := Closed{ClosedGate: *a.Closed, State: string(signalbox.AccountClosed), Agents: []string{a.Name}, Cure: engine.AgentCure}
		if c.Until.IsZero() {
			c.State = string(signalbox.AccountTrying)
		}
		c.Text = c.String()
		all = append(all, c)
	}
	return all
}

// budgetGates are today's used-up budgets. Only callers that see all see a user's budget.
func budgetGates(n *Now) (all []Closed) {
	for i := range n.Budgets {
		row := &n.Budgets[i]
		if row.Gate == nil {
			continue
		}
		c := Closed{ClosedGate: *row.Gate, State: string(signalbox.AccountClosed), Cure: "it opens by itself at the end of the day; signalbox unpark ID lets one task run now"}
		if row.Scope != budget.ScopeDay {
			c.Agents = []string{}
		}
		for a := range n.Agents {
			if row.Scope == budget.ScopeAgent && a.Name == row.Name.Name || row.Scope == budget.ScopeAccount && a.Account == row.Name.Name {
				c.Agents = append(c.Agents, a.Name)
			}
		}
		all = append(all, c)
	}
	return all
}

func toolGates(n *Now) (all []Closed) {
	for i := range n.Tools {
		q := &n.Tools[i]
		closed, keys := q.Closed()
		if keys == 0 || !closed.Until.After(n.At) {
			continue
		}
		c := Closed{State: string(signalbox.AccountClosed), Cure: "it opens by itself then; signalbox tools open " + q.Name + " does not wait for that"}
		c.Gate = signalbox.Gate{Kind: signalbox.GateTool, Name: q.Name, Text: cmp.Or(closed.Why, "a caller closed it"), Until: closed.Until.UTC()}
		if q.PerKey {
			c.Gate.Text = fmt.Sprintf("for %d of its %d keys: %s", keys, q.Keys, c.Gate.Text)
		}
		c.Text, c.Since, c.Waiting = c.String(), closed.Since, q.Depth
		all = append(all, c)
	}
	return all
}

// timeGates is one gate for all tasks that are parked until a time.
func timeGates(n *Now) []Closed {
	c := Closed{State: string(signalbox.AccountClosed), Agents: []string{}}
	tasks := 0
	for i := range n.Parked {
		t := &n.Parked[i]
		if t.Parking.Kind != signalbox.GateTime {
			continue
		}
		if tasks++; tasks == 1 || t.Parking.Until.Before(c.Until) {
			c.Gate, c.Cure = t.Parking.Gate, "each continues by itself then; signalbox unpark "+t.ID+" lets the first run now"
		}
		if c.Since.IsZero() || t.Parking.At.Before(c.Since) {
			c.Since = t.Parking.At
		}
		if agent, own := signalbox.OnlyAgent(t.Queue); own && !slices.Contains(c.Agents, agent) {
			c.Agents = append(c.Agents, agent)
		}
	}
	switch tasks {
	case 0:
		return nil
	case 1:
		c.Text = "1 parked task goes on " + ahead(&c.Gate)
	default:
		c.Text = fmt.Sprintf("%d parked tasks go on, the first %s", tasks, ahead(&c.Gate))
	}
	return []Closed{c}
}

func ahead(g *signalbox.Gate) string {
	text := "at " + g.Until.UTC().Format(time.RFC3339)
	if g.Text != "" {
		text += " (" + g.Text + ")"
	}
	return text
}
