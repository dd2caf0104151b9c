package callgraph

import (
	"context"
	"sync"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/internal/store"
)

// Index is an in-memory index of who waits for whom, for a director that is alone over its
// store: it sees every durable change first. Its methods are safe for concurrent use.
type Index struct {
	loading sync.Mutex // one caller reads the store, while changes continue
	mu      sync.Mutex
	loaded  bool
	rows    rows
	// removed has the newest revision of recently removed rows, older that of rows
	// removed before those. Changes may arrive out of order, because the goroutines that
	// make them run concurrently.
	removed, older map[string]int64
}

// NewIndex returns an empty index.
func NewIndex() *Index { return &Index{rows: newRows(), removed: map[string]int64{}} }

// maxRemoved bounds the rows in Index.removed.
const maxRemoved = 2048

// pageSize bounds the calls of one execution that are read.
const pageSize = 500

// Agents are the agents at one point in time.
type Agents struct {
	Slots   map[string]int
	Serving func(queue string) []string // those that are up and serve the queue
}

// FindCycle is FindCycle over the index, which it first reads from the store if necessary.
// If there is no cycle, a call with an ID is added, so that no concurrent call can close a
// cycle with it before it is stored.
func (b *Index) FindCycle(ctx context.Context, r store.Reader, a Agents, caller string, c Call) ([]Run, error) {
	if err := b.load(ctx, r); err != nil {
		return nil, err
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	path, err := FindCycle(&graph{rows: b.rows, agents: a, serving: map[string][]string{}}, caller, c)
	if err == nil && path == nil && c.ID != "" {
		b.rows.put(row{Call: c, parent: caller})
	}
	return path, err
}

// FindStoredCycle is FindCycle over the stored rows, for several directors over one store.
func FindStoredCycle(ctx context.Context, r store.Reader, a Agents, caller string, c Call) ([]Run, error) {
	inFlight, err := r.InFlight(ctx)
	if err != nil {
		return nil, err
	}
	g := graph{rows: newRows(), agents: a, serving: map[string][]string{}}
	for i := range inFlight {
		row := rowOf(&inFlight[i])
		row.parent = "" // read as a child
		g.put(row)
	}
	g.children = func(run string) ([]signalbox.Task, error) { return r.Children(ctx, run, pageSize) }
	return FindCycle(&g, caller, c)
}

// load reads the rows in flight from the store, once.
func (b *Index) load(ctx context.Context, r store.Reader) error {
	b.loading.Lock()
	defer b.loading.Unlock()
	if b.loaded {
		return nil
	}
	tasks, err := r.InFlight(ctx)
	if err != nil {
		return err
	}
	for _, t := range tasks {
		children, err := r.Children(ctx, t.ID, pageSize)
		if err != nil {
			return err
		}
		tasks = append(tasks, children...)
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	for i := range tasks {
		b.update(&tasks[i])
	}
	b.loaded = true
	return nil
}

// TaskChanged records a change of a task.
func (b *Index) TaskChanged(t *signalbox.Task) {
	b.mu.Lock()
	b.update(t)
	b.mu.Unlock()
}

func (b *Index) update(t *signalbox.Task) {
	was, known := b.rows.byID[t.ID]
	switch {
	case t.Mode == signalbox.ModeTool: // tool calls wait for no agent
	case known && was.rev >= t.Rev || max(b.removed[t.ID], b.older[t.ID]) >= t.Rev: // an older revision
	case t.State.InFlight() || t.State.Waiting() && t.Waits:
		b.rows.put(rowOf(t))
	case t.Rev > 1:
		b.rows.remove(t.ID)
		if len(b.removed) >= maxRemoved {
			b.removed, b.older = map[string]int64{}, b.removed
		}
		b.removed[t.ID] = t.Rev
	}
}

// DropUnstored removes a call that was not stored.
func (b *Index) DropUnstored(id string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if r, known := b.rows.byID[id]; known && r.rev == 0 {
		b.rows.remove(id)
	}
}

// SessionBound records that an agent now holds a conversation: the store moves tasks
// waiting for its turns to the agent's queue, without a change event for each.
func (b *Index) SessionBound(session, agent string) {
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

// row is an execution or a waiting call, reduced to what the call graph needs.
type row struct {
	Call            // Agent is "" while the call waits
	parent   string // execution that waits for it; "" if none
	isolated bool   // bypass: it holds no slot that others wait for
	rev      int64  // 0: not stored yet
}

func rowOf(t *signalbox.Task) row {
	r := row{
		Call: Call{ID: t.ID, Queue: t.Queue, Session: t.SessionID, Agent: t.Agent},
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

// rows are the rows of a call graph, with indexes.
type rows struct {
	byID      map[string]row
	byAgent   idSets // executions that hold one of its slots
	bySession idSets
	byParent  idSets // calls that the execution waits for
}

func newRows() rows {
	return rows{byID: map[string]row{}, byAgent: idSets{}, bySession: idSets{}, byParent: idSets{}}
}

func (r rows) put(row row) {
	r.remove(row.ID)
	r.byID[row.ID] = row
	if !row.isolated {
		r.byAgent.add(row.Agent, row.ID)
	}
	r.bySession.add(row.Session, row.ID)
	r.byParent.add(row.parent, row.ID)
}

func (r rows) remove(id string) {
	row, known := r.byID[id]
	if !known {
		return
	}
	delete(r.byID, id)
	r.byAgent.remove(row.Agent, id)
	r.bySession.remove(row.Session, id)
	r.byParent.remove(row.parent, id)
}

func (r rows) runs(ids map[string]struct{}) []Run {
	var runs []Run
	for id := range ids {
		if row := r.byID[id]; row.Agent != "" && !row.isolated {
			runs = append(runs, Run{ID: id, Agent: row.Agent, Session: row.Session})
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

// graph is the current call graph.
type graph struct {
	rows
	agents  Agents
	serving map[string][]string // cache of Servers
	// children reads the calls of an execution if several directors share the store:
	// then the rows contain only what is in flight. nil: the rows are complete.
	children func(run string) ([]signalbox.Task, error)
}

// Servers returns the owner of an agent queue, or else the agents that are up and serve
// the queue. The owner counts even if it is down, since it may come back.
func (g *graph) Servers(queue string) []string {
	if name, own := signalbox.QueueAgent(queue); own {
		return []string{name}
	}
	names, known := g.serving[queue]
	if !known {
		names = g.agents.Serving(queue)
		g.serving[queue] = names
	}
	return names
}

func (g *graph) Slots(agent string) (n int, known bool) {
	n, known = g.agents.Slots[agent]
	return n, known
}

func (g *graph) Holders(agent string) []Run { return g.runs(g.byAgent[agent]) }
func (g *graph) Turns(session string) []Run { return g.runs(g.bySession[session]) }

func (g *graph) Calls(run string) (calls []Call, err error) {
	for id := range g.byParent[run] {
		calls = append(calls, g.byID[id].Call)
	}
	if g.children == nil {
		return calls, nil
	}
	children, err := g.children(run)
	for i := range children {
		if c := &children[i]; c.Waits && !c.State.Terminal() {
			calls = append(calls, rowOf(c).Call)
		}
	}
	return calls, err
}
