package live

import (
	"bytes"
	"context"
	"iter"
	"maps"
	"slices"
	"time"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/api"
	"github.com/signalbox-ai/signalbox/internal/engine"
	"github.com/signalbox-ai/signalbox/internal/httpapi/view"
	"github.com/signalbox-ai/signalbox/internal/store"
	"github.com/signalbox-ai/signalbox/toolqueue"
)

const (
	maxLine    = 10 // shown tasks per queue
	maxWaiters = 20 // shown waiting calls per tool queue
	// Heartbeats do not mark an agent dirty. To show their changes, the next
	// pollBatch agents with slots in use are rebuilt every pollEvery.
	pollEvery = time.Second
	pollBatch = 10
	// etasEvery is how often the ETAs of the lines are compared with the shown ones:
	// they also change with the clock.
	etasEvery = time.Second
)

// builder makes entities from the store, the dispatcher and the tool queues. It keeps
// what the last refresh read, so that the next one rebuilds only differences.
type builder struct {
	cfg      *Config
	inbox    *inbox
	entities map[string]*entity // Projection.entities; read only

	// What the last refresh read.
	journalSeq int64 // the newest entry read
	snapshot   store.Snapshot
	pauses     []signalbox.Pause           // in force
	slots      map[string][]signalbox.Slot // in use, by agent
	inFlight   map[string]*signalbox.Task  // by id
	rows       map[string]signalbox.Agent  // agents but executors, by name; nil before the first refresh
	executors  map[string]bool             // the queues of the director's own executors
	queueNames map[string]bool             // the queues that are entities
	toolQueues []toolqueue.Status          // as Tools lists them
	calls      map[string]api.LiveCall     // tool calls of tasks in flight, by task id

	gates    gateState
	landings landingState

	// The results of the last rebuild of each agent, and sums over them.
	agents     map[string]*agentState // by name
	troubled   map[string]bool        // the agents with findings
	agentsUp   int
	agentSlots int // the sum of agentState.slots

	pressure      pressureLog
	tally         tally
	failures      *failures
	schedules     scheduleCache
	firstSeen     map[string]time.Time // Since of the present findings, by kind, subject and task
	due           dueAgents
	toPoll        []string  // the rest of the current round of polls
	polledAt      time.Time // by the wall clock, like etasCheckedAt
	etasCheckedAt time.Time
	rebuildAll    bool // no refresh yet, or the last one failed
}

func (b *builder) init(cfg *Config, in *inbox, entities map[string]*entity) {
	b.cfg, b.inbox, b.entities, b.rebuildAll = cfg, in, entities, true
	b.firstSeen, b.queueNames = map[string]time.Time{}, map[string]bool{}
	b.failures = newFailures()
	b.agents, b.troubled = map[string]*agentState{}, map[string]bool{}
}

// refresh is one run of builder.refresh, and its result.
type refresh struct {
	*builder
	ctx context.Context
	now time.Time

	// What is to be rebuilt: agents and queues by name, tasks by id.
	dirtyAgents, dirtyQueues, dirtyTasks map[string]bool

	// The result.
	state   state
	changed []*entity          // new or changed entities
	gone    map[string]*entity // by key
	delta   delta
	// complete says that the delta has all changes since the last refresh.
	// Otherwise readers need a new snapshot.
	complete bool
}

// refresh reads the store and rebuilds what has changed. If watched is false, the delta
// is not needed: it leaves out the tasks and schedules that are not entities, and the
// result is not complete.
func (b *builder) refresh(ctx context.Context, watched bool) (*refresh, error) {
	r := &refresh{
		builder: b, ctx: ctx, now: b.cfg.Engine.Now(),
		dirtyAgents: map[string]bool{}, dirtyQueues: map[string]bool{}, dirtyTasks: map[string]bool{},
		gone: map[string]*entity{},
	}
	// Before the store is read: later changes are for the next refresh.
	all, agentsChanged, agents := b.inbox.take()
	all, b.rebuildAll = all || b.rebuildAll, true
	for name := range agents {
		r.dirtyAgents[name] = true
	}
	snapshot, err := b.cfg.Engine.Read().Snapshot(ctx, maxLine)
	if err != nil {
		return nil, err
	}
	first := b.rows == nil
	changes := &journalChanges{collectTasks: watched, seenTasks: map[string]bool{}, schedules: map[string]bool{}, agents: r.dirtyAgents}
	if !first {
		if err := b.readJournal(ctx, b.journalSeq, snapshot.Entry, changes); err != nil {
			return nil, err
		}
	}
	if agentsChanged || all || changes.agentsChanged || first {
		if err := r.readAgents(); err != nil {
			return nil, err
		}
	}
	r.compareStore(snapshot)
	if err := r.readGates(changes, all || first); err != nil {
		return nil, err
	}
	if err := r.readLandings(changes, all || first); err != nil {
		return nil, err
	}
	r.compareTools(all)
	r.markDue(all)
	if all {
		r.markAll()
	}
	r.rebuild()
	r.setGates()
	r.sumTotals()
	if first {
		if err := r.seed(snapshot.Entry); err != nil {
			b.rows = nil
			return nil, err
		}
	} else if err := r.readEnds(changes.ended); err != nil {
		return nil, err
	} else if err := r.addUntracked(changes); err != nil {
		return nil, err
	}
	r.complete = !first && !changes.incomplete && changes.collectTasks
	r.finish()
	b.journalSeq, b.rebuildAll = snapshot.Entry, false
	return r, nil
}

// finish fills in the state and the entities of the delta.
func (r *refresh) finish() {
	s := &r.state
	s.at, s.pauses, s.gates, s.inFlight = r.now, r.pauses, r.gates.closed, r.snapshot.InFlight
	for i := range r.toolQueues {
		s.toolQueues = append(s.toolQueues, r.toolQueues[i].Name)
	}
	r.tally.addTo(&s.totals, r.now)
	s.pressure = r.pressure.sample(&s.totals, r.now)
	s.health = r.findings()
	r.delta.entities = append(r.changed[:len(r.changed):len(r.changed)], r.delta.entities...)
	inDelta := map[string]bool{}
	for _, e := range r.delta.entities {
		inDelta[e.key] = true
	}
	for _, e := range r.delta.gone {
		inDelta[e.key] = true
	}
	for _, key := range slices.Sorted(maps.Keys(r.gone)) {
		if !inDelta[key] { // an ended task is sent with its final state
			r.delta.gone = append(r.delta.gone, r.gone[key])
		}
	}
}

// set renders an entity, and adds it to the changed ones if its data differ.
func (r *refresh) set(e *entity) {
	render(e)
	if before := r.entities[e.key]; before == nil || !bytes.Equal(before.data, e.data) {
		r.changed = append(r.changed, e)
	}
}

// drop removes the entity with that key, if there is one.
func (r *refresh) drop(key string) {
	if e := r.entities[key]; e != nil {
		r.gone[key] = e
	}
}

// readAgents reads which agents and executors exist.
func (r *refresh) readAgents() error {
	stored, err := r.cfg.Engine.Read().Agents(r.ctx)
	if err != nil {
		return err
	}
	rows, executors := map[string]signalbox.Agent{}, map[string]bool{}
	add := func(a *signalbox.Agent, live bool) {
		kind, executor := signalbox.ExecutorKind(a.Name)
		_, known := rows[a.Name]
		switch {
		case executor && live:
			executors[kind] = true
		case !executor && !known:
			rows[a.Name] = *a
		}
	}
	for i := range stored {
		add(&stored[i], false)
	}
	for _, a := range r.cfg.Engine.LiveAgents() {
		add(&a.Agent, true)
	}
	for name := range r.rows {
		if _, still := rows[name]; !still {
			r.removeAgent(name)
			r.due.set(name, time.Time{})
			r.drop("agent:" + name)
			for _, s := range r.slots[name] {
				r.dirtyTasks[s.TaskID] = true
			}
		}
	}
	for name := range rows {
		if _, known := r.rows[name]; !known {
			r.dirtyAgents[name] = true
		}
	}
	r.rows, r.executors = rows, executors
	return nil
}

// compareStore marks the differences between the new snapshot and the last one.
func (r *refresh) compareStore(snapshot store.Snapshot) {
	inFlight := make(map[string]*signalbox.Task, len(snapshot.InFlight))
	for i := range snapshot.InFlight {
		t := &snapshot.InFlight[i]
		inFlight[t.ID] = t
		if before := r.inFlight[t.ID]; before == nil || before.Rev != t.Rev {
			r.markTask(t)
		}
	}
	for id, t := range r.inFlight {
		if inFlight[id] == nil {
			r.dirtyAgents[t.Agent] = true
			r.drop(taskKey(id))
		}
	}
	slots := map[string][]signalbox.Slot{}
	for _, s := range snapshot.Slots {
		s.Expires = time.Time{} // renewed constantly, and not shown
		slots[s.Agent] = append(slots[s.Agent], s)
	}
	for agent := range unionKeys(r.slots, slots) {
		if !slices.Equal(r.slots[agent], slots[agent]) {
			r.dirtyAgents[agent] = true
		}
	}
	for queue := range unionKeys(r.snapshot.Counts.Queues, snapshot.Counts.Queues) {
		same := func(a, b signalbox.Task) bool { return a.ID == b.ID && a.Rev == b.Rev }
		if r.snapshot.Counts.Queues[queue] != snapshot.Counts.Queues[queue] || !slices.EqualFunc(r.snapshot.Heads[queue], snapshot.Heads[queue], same) {
			r.dirtyQueues[queue] = true
		}
	}
	r.snapshot, r.inFlight, r.slots = snapshot, inFlight, slots
	pauses := slices.DeleteFunc(snapshot.Pauses, func(p signalbox.Pause) bool { return p.UntilMS != 0 && p.UntilMS <= r.now.UnixMilli() })
	if !slices.Equal(pauses, r.pauses) {
		for _, p := range slices.Concat(pauses, r.pauses) {
			r.dirtyQueues[p.Queue] = true
		}
		r.pauses = pauses
	}
	if r.dirtyQueues[""] { // the pause of all queues
		r.markAll()
	}
}

// markTask marks a task in flight and its agent dirty.
func (r *refresh) markTask(t *signalbox.Task) {
	r.dirtyTasks[t.ID] = true
	r.dirtyAgents[t.Agent] = true
}

// unionKeys iterates over the keys of both maps, each once.
func unionKeys[V, W any](a map[string]V, b map[string]W) iter.Seq[string] {
	return func(yield func(string) bool) {
		for key := range a {
			if !yield(key) {
				return
			}
		}
		for key := range b {
			if _, both := a[key]; !both && !yield(key) {
				return
			}
		}
	}
}

// markAll marks everything dirty, and drops entities that no longer exist.
func (r *refresh) markAll() {
	for key, e := range r.entities {
		switch {
		case e.agent != nil && r.rows[e.agent.Name].Name == "", e.task != nil && r.inFlight[e.task.QueueID] == nil:
			r.drop(key)
		case e.toolQueue != nil && !slices.ContainsFunc(r.toolQueues, func(q toolqueue.Status) bool { return q.Name == e.toolQueue.Name }):
			r.drop(key)
		case e.queue != nil:
			r.queueNames[e.queue.Name] = true // rebuild drops it if it no longer exists
		}
	}
	for name := range r.rows {
		r.dirtyAgents[name] = true
	}
	for id := range r.inFlight {
		r.dirtyTasks[id] = true
	}
	for name := range r.queueNames {
		r.dirtyQueues[name] = true
	}
	for queue := range r.snapshot.Counts.Queues {
		r.dirtyQueues[queue] = true
	}
}

// markDue marks what changes only with the clock: agents that are due, the next batch
// of polled agents, and queues whose ETAs differ. If all is set, it compares the ETAs
// even if that was done a moment ago.
func (r *refresh) markDue(all bool) {
	for _, name := range r.due.popDue(r.now) {
		r.dirtyAgents[name] = true
	}
	now := time.Now()
	if now.Sub(r.polledAt) >= pollEvery {
		r.polledAt = now
		if len(r.toPoll) == 0 {
			r.toPoll = slices.Sorted(maps.Keys(r.slots))
		}
		n := min(pollBatch, len(r.toPoll))
		for _, name := range r.toPoll[:n] {
			r.dirtyAgents[name] = true
		}
		r.toPoll = r.toPoll[n:]
	}
	if now.Sub(r.etasCheckedAt) >= etasEvery || all {
		r.etasCheckedAt = now
		for queue, head := range r.snapshot.Heads {
			if !r.sameETAs(queue, head) {
				r.dirtyQueues[queue] = true
			}
		}
	}
}

// rebuild rebuilds the entities of everything that is dirty.
func (r *refresh) rebuild() {
	names := r.listQueues()
	for name := range unionKeys(r.queueNames, names) {
		if !names[name] {
			r.drop("queue:" + name)
		} else if !r.queueNames[name] {
			r.dirtyQueues[name] = true
		}
	}
	r.queueNames = names
	for queue := range r.dirtyQueues {
		agent, own := signalbox.QueueAgent(queue)
		switch _, known := r.rows[agent]; {
		case names[queue]:
			r.set(r.queueEntity(queue))
		case own && known:
			r.dirtyAgents[agent] = true
		}
	}
	for name := range r.dirtyAgents {
		if row, known := r.rows[name]; known {
			r.set(r.agentEntity(&row))
		}
	}
	for id := range r.dirtyTasks { // the remaining ones, of executors and unknown agents
		if t := r.inFlight[id]; t != nil {
			row := r.liveTask(t, r.liveAgent(t.Agent))
			r.set(&entity{key: taskKey(id), task: &row, owner: t.Owner})
		}
	}
}

// listQueues returns the names of the queues that are entities: queues without a known
// agent that have waiting tasks, a pause or an executor, and always the queue work. The
// queue of an agent is part of the agent's entity.
func (r *refresh) listQueues() map[string]bool {
	names := map[string]bool{signalbox.QueueWork: true}
	add := func(name string) {
		agent, own := signalbox.QueueAgent(name)
		_, known := r.rows[agent]
		if _, bypass := signalbox.QueueBypass(name); name != "" && !bypass && !(own && known) {
			names[name] = true
		}
	}
	for name, n := range r.snapshot.Counts.Queues {
		if n > 0 {
			add(name)
		}
	}
	for _, p := range r.pauses {
		add(p.Queue)
	}
	for kind := range r.executors {
		add(kind)
	}
	return names
}

func (r *refresh) queueEntity(name string) *entity {
	q := &api.LiveQueue{Name: name, Waiting: r.snapshot.Counts.Queues[name], Pause: r.pauseOf(name)}
	e := &entity{key: "queue:" + name, queue: q}
	q.Line, e.lineOwners = r.line(name)
	return e
}

// pauseOf is the pause that applies to a queue, its own or that of all queues, or nil.
func (r *refresh) pauseOf(queue string) *api.Pause {
	for _, p := range r.pauses {
		if p.Queue == queue || p.Queue == "" {
			return &view.Pauses([]signalbox.Pause{p})[0]
		}
	}
	return nil
}

// liveAgent is the state of an agent at the dispatcher; zero if the dispatcher does not
// know the agent.
func (r *refresh) liveAgent(name string) engine.LiveAgent {
	a, _ := r.cfg.Engine.LiveAgent(name)
	return a
}
