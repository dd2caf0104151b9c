package engine

import (
	"context"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/internal/engine/callgraph"
	"github.com/signalbox-ai/signalbox/internal/store"
)

// callRow is an execution, or a call that waits, as far as the graph of calls
// needs it.
type callRow struct {
	callgraph.Call        // Agent is "" while it waits
	parent         string // execution that waits for it; "" for none
	isolated       bool   // it holds no slot that others wait for
	rev            int64  // 0: it is not stored yet
}

func callRowOf(t *signalbox.Task) callRow {
	r := callRow{
		Call: callgraph.Call{ID: t.ID, Queue: t.Queue, Session: t.SessionID, Agent: t.Agent},
		rev:  t.Rev, isolated: signalbox.Isolated(t.Slot),
	}
	if !t.State.InFlight() {
		r.Agent = ""
	}
	if t.Waits {
		r.parent = t.ParentID
	}
	return r
}

// callRows are the rows of a graph of calls.
type callRows struct {
	byID      map[string]callRow
	byAgent   idSets // executions that hold one of its slots
	bySession idSets
	byParent  idSets // calls that it waits for
}

func newCallRows() *callRows {
	return &callRows{byID: map[string]callRow{}, byAgent: idSets{}, bySession: idSets{}, byParent: idSets{}}
}

func (r *callRows) put(row callRow) {
	r.remove(row.ID)
	r.byID[row.ID] = row
	if !row.isolated {
		r.byAgent.add(row.Agent, row.ID)
	}
	r.bySession.add(row.Session, row.ID)
	r.byParent.add(row.parent, row.ID)
}

func (r *callRows) remove(id string) {
	row, known := r.byID[id]
	if !known {
		return
	}
	delete(r.byID, id)
	r.byAgent.remove(row.Agent, id)
	r.bySession.remove(row.Session, id)
	r.byParent.remove(row.parent, id)
}

func (r *callRows) runs(ids map[string]struct{}) []callgraph.Run {
	var runs []callgraph.Run
	for id := range ids {
		if row := r.byID[id]; row.Agent != "" && !row.isolated {
			runs = append(runs, callgraph.Run{ID: id, Agent: row.Agent, Session: row.Session})
		}
	}
	return runs
}

// idSets are sets of ids by a name; nothing is kept under "".
type idSets map[string]map[string]struct{}

func (x idSets) add(name, id string) {
	if name == "" {
		return
	}
	if x[name] == nil {
		x[name] = map[string]struct{}{}
	}
	x[name][id] = struct{}{}
}

func (x idSets) remove(name, id string) {
	if delete(x[name], id); len(x[name]) == 0 {
		delete(x, name)
	}
}

// callFleet are the agents of a graph of calls, as they are now.
type callFleet struct {
	agents  []LiveAgent
	slots   map[string]int
	serving map[string][]string // by queue, as far as it was asked for
}

func newCallFleet(agents []LiveAgent) callFleet {
	f := callFleet{agents: agents, slots: make(map[string]int, len(agents)), serving: map[string][]string{}}
	for i := range agents {
		f.slots[agents[i].Name] = agents[i].Slots
	}
	return f
}

// Servers returns the agent whose own queue it is, else those that are up and
// serve it: one that is not may still come.
func (f callFleet) Servers(queue string) []string {
	if name, own := signalbox.QueueAgent(queue); own {
		return []string{name}
	}
	names, known := f.serving[queue]
	if !known {
		for i := range f.agents {
			if a := &f.agents[i]; a.Up && a.Serves(queue) {
				names = append(names, a.Name)
			}
		}
		f.serving[queue] = names
	}
	return names
}

func (f callFleet) Slots(agent string) (n int, known bool) {
	n, known = f.slots[agent]
	return n, known
}

// bookGraph is the graph of calls as the book has it.
type bookGraph struct {
	callFleet
	rows *callRows
}

func (g bookGraph) Holders(agent string) []callgraph.Run { return g.rows.runs(g.rows.byAgent[agent]) }
func (g bookGraph) Turns(session string) []callgraph.Run {
	return g.rows.runs(g.rows.bySession[session])
}

func (g bookGraph) Calls(run string) ([]callgraph.Call, error) {
	var calls []callgraph.Call
	for id := range g.rows.byParent[run] {
		calls = append(calls, g.rows.byID[id].Call)
	}
	return calls, nil
}

// storeGraph is the graph of calls over a store that other directors write to:
// rows has what is in flight, and the calls of an execution are read when the
// search comes to it.
type storeGraph struct {
	bookGraph
	ctx   context.Context //nolint:containedctx // of one question
	store store.Reader
}

func (g storeGraph) Calls(run string) ([]callgraph.Call, error) {
	children, err := g.store.Children(g.ctx, run, batch)
	if err != nil {
		return nil, err
	}
	var calls []callgraph.Call
	for i := range children {
		if c := &children[i]; c.Waits && !c.State.Terminal() {
			calls = append(calls, callRowOf(c).Call)
		}
	}
	return calls, nil
}
