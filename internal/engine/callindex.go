package engine

import (
	"context"
	"sync"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/internal/engine/callgraph"
	"github.com/signalbox-ai/signalbox/internal/store"
)

// callIndex is an in-memory index of who waits for whom, used while this is the only
// director over its store: it sees every durable change before anyone else does.
type callIndex struct {
	loading sync.Mutex // one caller reads the store, while changes go on
	mu      sync.Mutex
	loaded  bool
	rows    callRows
	// removed has the newest revision of rows removed lately, older that of those removed
	// before: changes arrive out of order while the goroutines that made them are between
	// two statements.
	removed, older map[string]int64
}

// maxRemoved bounds the rows in callIndex.removed.
const maxRemoved = 2048

// load reads what is in flight from the store, once.
func (b *callIndex) load(ctx context.Context, r store.Reader) error {
	b.loading.Lock()
	defer b.loading.Unlock()
	if b.loaded {
		return nil
	}
	rows, err := r.InFlight(ctx)
	if err != nil {
		return err
	}
	for _, t := range rows {
		children, err := r.Children(ctx, t.ID, batchSize)
		if err != nil {
			return err
		}
		rows = append(rows, children...)
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	for i := range rows {
		b.update(&rows[i])
	}
	b.loaded = true
	return nil
}

func (b *callIndex) taskChanged(t *signalbox.Task) {
	b.mu.Lock()
	b.update(t)
	b.mu.Unlock()
}

func (b *callIndex) update(t *signalbox.Task) {
	was, known := b.rows.byID[t.ID]
	switch {
	case t.Mode == signalbox.ModeTool: // tools wait for no agent
	case known && was.rev >= t.Rev || max(b.removed[t.ID], b.older[t.ID]) >= t.Rev: // an older revision
	case t.State.InFlight() || t.State.Waiting() && t.Waits:
		b.rows.put(callRowOf(t))
	case t.Rev > 1:
		b.rows.remove(t.ID)
		if len(b.removed) >= maxRemoved {
			b.removed, b.older = map[string]int64{}, b.removed
		}
		b.removed[t.ID] = t.Rev
	}
}

// dropUnstored removes a call that was not stored.
func (b *callIndex) dropUnstored(id string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if r, known := b.rows.byID[id]; known && r.rev == 0 {
		b.rows.remove(id)
	}
}

// sessionBound records that an agent now holds a conversation: the store moves tasks
// waiting for its turns to the agent's queue, without a change event for each.
func (b *callIndex) sessionBound(session, agent string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for id := range b.rows.bySession[session] {
		r := b.rows.byID[id]
		if _, own := signalbox.QueueAgent(r.Queue); r.Agent == "" && !own {
			r.Queue = signalbox.AgentQueue(agent)
			b.rows.byID[id] = r
		}
	}
}

// callRow is an execution or a waiting call, with what the call graph needs of it.
type callRow struct {
	callgraph.Call        // Agent is "" while it waits
	parent         string // execution that waits for it; "" for none
	isolated       bool   // bypass: it holds no slot that others wait for
	rev            int64  // 0: not stored yet
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

// callRows are the rows of a call graph, with indexes.
type callRows struct {
	byID      map[string]callRow
	byAgent   idSets // executions that hold one of its slots
	bySession idSets
	byParent  idSets // calls that the execution waits for
}

func newCallRows() callRows {
	return callRows{byID: map[string]callRow{}, byAgent: idSets{}, bySession: idSets{}, byParent: idSets{}}
}

func (r callRows) put(row callRow) {
	r.remove(row.ID)
	r.byID[row.ID] = row
	if !row.isolated {
		r.byAgent.add(row.Agent, row.ID)
	}
	r.bySession.add(row.Session, row.ID)
	r.byParent.add(row.parent, row.ID)
}

func (r callRows) remove(id string) {
	row, known := r.byID[id]
	if !known {
		return
	}
	delete(r.byID, id)
	r.byAgent.remove(row.Agent, id)
	r.bySession.remove(row.Session, id)
	r.byParent.remove(row.parent, id)
}

func (r callRows) runs(ids map[string]struct{}) []callgraph.Run {
	var runs []callgraph.Run
	for id := range ids {
		if row := r.byID[id]; row.Agent != "" && !row.isolated {
			runs = append(runs, callgraph.Run{ID: id, Agent: row.Agent, Session: row.Session})
		}
	}
	return runs
}

// idSets are sets of ids by name; "" is not a name.
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

// callGraph is the call graph as it is now.
type callGraph struct {
	callRows
	agents  []LiveAgent
	slots   map[string]int
	serving map[string][]string // cache of Servers
	// children reads the calls of an execution where several directors share the store:
	// there, the rows have only what is in flight. nil: the rows have all.
	children func(run string) ([]signalbox.Task, error)
}

func newCallGraph(rows callRows, agents []LiveAgent) *callGraph {
	g := &callGraph{callRows: rows, agents: agents, slots: make(map[string]int, len(agents)), serving: map[string][]string{}}
	for i := range agents {
		g.slots[agents[i].Name] = agents[i].Slots
	}
	return g
}

// Servers returns the owner of an agent queue, else the agents that are up and serve the
// queue. The owner counts even if it is down, since it may come back.
func (g *callGraph) Servers(queue string) []string {
	if name, own := signalbox.QueueAgent(queue); own {
		return []string{name}
	}
	names, known := g.serving[queue]
	if !known {
		for i := range g.agents {
			if a := &g.agents[i]; a.Up && a.Serves(queue) {
				names = append(names, a.Name)
			}
		}
		g.serving[queue] = names
	}
	return names
}

func (g *callGraph) Slots(agent string) (n int, known bool) {
	n, known = g.slots[agent]
	return n, known
}

func (g *callGraph) Holders(agent string) []callgraph.Run { return g.runs(g.byAgent[agent]) }
func (g *callGraph) Turns(session string) []callgraph.Run { return g.runs(g.bySession[session]) }

func (g *callGraph) Calls(run string) (calls []callgraph.Call, err error) {
	for id := range g.byParent[run] {
		calls = append(calls, g.byID[id].Call)
	}
	if g.children == nil {
		return calls, nil
	}
	children, err := g.children(run)
	for i := range children {
		if c := &children[i]; c.Waits && !c.State.Terminal() {
			calls = append(calls, callRowOf(c).Call)
		}
	}
	return calls, err
}
