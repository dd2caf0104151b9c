package live

import (
	"bytes"
	"context"
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
	// shownHeads is how many of a line are shown.
	shownHeads = 10
	// shownWaiters bounds the waiters of a tool queue in the stream.
	shownWaiters = 20
	// turnEvery and inTurn say how many agents at work are looked at though nothing
	// was announced of them, in turns: their heartbeats announce nothing.
	turnEvery = time.Second
	inTurn    = 10
	// estimateEvery is after how long an estimate may be another one by time alone.
	estimateEvery = time.Second
)

// builder makes entities out of the store, the agents and the tool queues, and
// remembers what they were made of: what is the same as before is not made anew.
type builder struct {
	cfg      *Config
	inbox    *inbox
	entities map[string]*entity // projection.shown: read only

	journalAt     int64 // of the journal, up to which all was told
	snapshot      store.Snapshot
	pauses        []signalbox.Pause // in force
	slots         map[string][]signalbox.Slot
	inFlight      map[string]*signalbox.Task // of shot, by id
	rows          map[string]signalbox.Agent // as they are stored, without the executors
	executors     map[string]bool            // queues of the director's own
	agents        map[string]*liveAgent
	needAttention map[string]bool // of the agents: that need a person
	up            int             // of the agents
	offered       int             // slots of all agents
	lines         map[string]bool // queues that are entities
	queues        []toolqueue.Status
	calls         map[string]api.LiveCall // by task

	load        pressureLog
	tally       tally
	plans       plans
	firstSeen   map[string]time.Time // since when something needs a person
	due         dueAgents
	turn        []string  // agents at work that are still to be looked at in this turn
	turnedAt    time.Time // by the real clock
	estimatedAt time.Time // when the estimates were looked at
	rebuildAll  bool      // a look failed: everything is made anew
}

func (b *builder) init(cfg *Config, in *inbox, made map[string]*entity) {
	b.cfg, b.inbox, b.entities, b.rebuildAll = cfg, in, made, true
	b.firstSeen, b.lines = map[string]time.Time{}, map[string]bool{}
	b.agents, b.needAttention = map[string]*liveAgent{}, map[string]bool{}
}

// refresh is one look, and what it finds.
type refresh struct {
	*builder
	ctx   context.Context
	now   time.Time
	state state

	// What is to be made anew.
	dirtyAgents, dirtyQueues, dirtyTasks map[string]bool

	changed  []*entity // that are new or changed
	gone     map[string]*entity
	change   delta
	complete bool // the change is all that is another
}

// refresh takes in what has changed. watched says that somebody wants to know the
// change.
func (b *builder) refresh(ctx context.Context, watched bool) (*refresh, error) {
	l := &refresh{
		builder: b, ctx: ctx, now: b.cfg.Engine.Now(),
		dirtyAgents: map[string]bool{}, dirtyQueues: map[string]bool{}, dirtyTasks: map[string]bool{},
		gone: map[string]*entity{},
	}
	all, members, agents := b.inbox.take() // before the store is read: what comes from now on is for the next look
	all, b.rebuildAll = all || b.rebuildAll, true
	for name := range agents {
		l.dirtyAgents[name] = true
	}
	shot, err := b.cfg.Engine.Read().Snapshot(ctx, shownHeads)
	if err != nil {
		return nil, err
	}
	started := b.rows == nil
	changes := &journalChanges{collectTasks: watched, seenTasks: map[string]bool{}, schedules: map[string]bool{}, agents: l.dirtyAgents}
	if !started {
		if err := b.readJournal(ctx, b.journalAt, shot.Entry, changes); err != nil {
			return nil, err
		}
	}
	if members || all || changes.agentsChanged || started {
		if err := l.readAgents(); err != nil {
			return nil, err
		}
	}
	l.compareStore(shot)
	l.compareTools(all)
	l.markDue(all)
	if all {
		l.markAll()
	}
	l.rebuild()
	l.sumTotals()
	if started {
		if err := b.tally.seed(ctx, b.cfg.Engine.Read(), l.now, shot.Entry); err != nil {
			b.rows = nil
			return nil, err
		}
	} else if err := l.moved(changes); err != nil {
		return nil, err
	}
	l.finish(started, changes)
	b.journalAt, b.rebuildAll = shot.Entry, false
	return l, nil
}

// finish adds what is of the whole.
func (l *refresh) finish(started bool, changes *journalChanges) {
	w := &l.state
	w.at, w.pauses, w.inFlight = l.now, l.pauses, l.snapshot.InFlight
	for i := range l.queues {
		w.capacity = append(w.capacity, l.queues[i].Name)
	}
	l.tally.addTo(&w.totals, l.now)
	w.pressure = l.load.sample(&w.totals, l.now)
	w.health = l.findings()
	l.complete = !started && !changes.incomplete && changes.collectTasks
	l.change.entities = append(l.changed[:len(l.changed):len(l.changed)], l.change.entities...)
	told := map[string]bool{}
	for _, e := range l.change.entities {
		told[e.key] = true
	}
	for _, e := range l.change.gone {
		told[e.key] = true
	}
	for _, key := range slices.Sorted(maps.Keys(l.gone)) {
		if !told[key] {
			l.change.gone = append(l.change.gone, l.gone[key])
		}
	}
}

// set adds an entity, unless it is as it was.
func (l *refresh) set(e *entity) {
	rendered(e)
	if before := l.entities[e.key]; before == nil || !bytes.Equal(before.data, e.data) {
		l.changed = append(l.changed, e)
	}
}

// drop takes an entity away.
func (l *refresh) drop(key string) {
	if e := l.entities[key]; e != nil {
		l.gone[key] = e
	}
}

// readAgents reads which agents there are.
func (l *refresh) readAgents() error {
	all, err := l.cfg.Engine.Read().Agents(l.ctx)
	if err != nil {
		return err
	}
	rows, executors := map[string]signalbox.Agent{}, map[string]bool{}
	add := func(a *signalbox.Agent, live bool) {
		kind, own := signalbox.ExecutorKind(a.Name)
		_, known := rows[a.Name]
		switch {
		case own && live:
			executors[kind] = true
		case !own && !known:
			rows[a.Name] = *a
		}
	}
	for i := range all {
		add(&all[i], false)
	}
	for _, a := range l.cfg.Engine.LiveAgents() {
		add(&a.Agent, true)
	}
	for name := range l.rows {
		if _, still := rows[name]; !still {
			l.forget(name)
			l.due.set(name, time.Time{})
			l.drop("agent:" + name)
			for _, s := range l.slots[name] {
				l.dirtyTasks[s.TaskID] = true
			}
		}
	}
	for name := range rows {
		if _, known := l.rows[name]; !known {
			l.dirtyAgents[name] = true
		}
	}
	l.rows, l.executors = rows, executors
	return nil
}

// compareStore compares the store with what it was, and notes what is another.
func (l *refresh) compareStore(shot store.Snapshot) {
	inFlight := make(map[string]*signalbox.Task, len(shot.InFlight))
	for i := range shot.InFlight {
		t := &shot.InFlight[i]
		inFlight[t.ID] = t
		if before := l.inFlight[t.ID]; before == nil || before.Rev != t.Rev {
			l.dirtyTask(t)
		}
	}
	for id, t := range l.inFlight {
		if inFlight[id] == nil {
			l.dirtyAgents[t.Agent] = true
			l.drop(taskKey(id))
		}
	}
	slots := map[string][]signalbox.Slot{}
	for _, s := range shot.Slots {
		s.Expires = time.Time{} // renewed all the time, and shown nowhere
		slots[s.Agent] = append(slots[s.Agent], s)
	}
	for agent := range keysOfBoth(l.slots, slots) {
		if !slices.Equal(l.slots[agent], slots[agent]) {
			l.dirtyAgents[agent] = true
		}
	}
	for queue := range keysOfBoth(l.snapshot.Counts.Queues, shot.Counts.Queues) {
		same := func(a, b signalbox.Task) bool { return a.ID == b.ID && a.Rev == b.Rev }
		if l.snapshot.Counts.Queues[queue] != shot.Counts.Queues[queue] || !slices.EqualFunc(l.snapshot.Heads[queue], shot.Heads[queue], same) {
			l.dirtyQueues[queue] = true
		}
	}
	l.snapshot, l.inFlight, l.slots = shot, inFlight, slots
	pauses := slices.DeleteFunc(shot.Pauses, func(p signalbox.Pause) bool { return p.UntilMS != 0 && p.UntilMS <= l.now.UnixMilli() })
	if !slices.Equal(pauses, l.pauses) {
		for _, p := range slices.Concat(pauses, l.pauses) {
			l.dirtyQueues[p.Queue] = true
		}
		l.pauses = pauses
	}
	if l.dirtyQueues[""] { // a pause of all
		l.markAll()
	}
}

func (l *refresh) dirtyTask(t *signalbox.Task) {
	l.dirtyTasks[t.ID] = true
	l.dirtyAgents[t.Agent] = true
}

// keysOfBoth goes over the keys of both maps.
func keysOfBoth[V, W any](a map[string]V, b map[string]W) func(func(string) bool) {
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

// markAll has all made anew, and takes away what is there no more.
func (l *refresh) markAll() {
	for key, e := range l.entities {
		switch {
		case e.agent != nil && l.rows[e.agent.Name].Name == "", e.task != nil && l.inFlight[e.task.QueueID] == nil:
			l.drop(key)
		case e.tools != nil && !slices.ContainsFunc(l.queues, func(q toolqueue.Status) bool { return q.Name == e.tools.Name }):
			l.drop(key)
		case e.queue != nil:
			l.lines[e.queue.Name] = true // or it goes
		}
	}
	for name := range l.rows {
		l.dirtyAgents[name] = true
	}
	for id := range l.inFlight {
		l.dirtyTasks[id] = true
	}
	for name := range l.lines {
		l.dirtyQueues[name] = true
	}
	for queue := range l.snapshot.Counts.Queues {
		l.dirtyQueues[queue] = true
	}
}

// markDue notes what is shown otherwise by time alone, and the agents whose turn it is.
func (l *refresh) markDue(all bool) {
	for _, name := range l.due.popDue(l.now) {
		l.dirtyAgents[name] = true
	}
	if now := time.Now(); now.Sub(l.turnedAt) >= turnEvery {
		l.turnedAt = now
		if len(l.turn) == 0 {
			l.turn = slices.Sorted(maps.Keys(l.slots))
		}
		n := min(inTurn, len(l.turn))
		for _, name := range l.turn[:n] {
			l.dirtyAgents[name] = true
		}
		l.turn = l.turn[n:]
	}
	if now := time.Now(); now.Sub(l.estimatedAt) >= estimateEvery || all {
		l.estimatedAt = now
		for queue, head := range l.snapshot.Heads {
			if !l.sameEstimates(queue, head) {
				l.dirtyQueues[queue] = true
			}
		}
	}
}

// rebuild makes everything anew that is dirty.
func (l *refresh) rebuild() {
	lines := l.lineNames()
	for name := range keysOfBoth(l.lines, lines) {
		if !lines[name] {
			l.drop("queue:" + name)
		} else if !l.lines[name] {
			l.dirtyQueues[name] = true
		}
	}
	l.lines = lines
	for queue := range l.dirtyQueues {
		agent, own := signalbox.QueueAgent(queue)
		switch _, known := l.rows[agent]; {
		case lines[queue]:
			l.set(l.queueEntity(queue))
		case own && known:
			l.dirtyAgents[agent] = true
		}
	}
	for name := range l.dirtyAgents {
		if row, known := l.rows[name]; known {
			l.set(l.agentEntity(&row))
		}
	}
	for id := range l.dirtyTasks { // of the executors, and of agents that are not known
		if t := l.inFlight[id]; t != nil {
			row := l.taskRow(t, l.liveOf(t.Agent))
			l.set(&entity{key: taskKey(id), task: &row, owner: t.Owner})
		}
	}
}

// lineNames are the lines that no single agent owns, and those of agents that
// are not known.
func (l *refresh) lineNames() map[string]bool {
	names := map[string]bool{signalbox.QueueWork: true}
	add := func(name string) {
		agent, one := signalbox.QueueAgent(name)
		_, known := l.rows[agent]
		if _, bypass := signalbox.QueueBypass(name); name != "" && !bypass && !(one && known) {
			names[name] = true
		}
	}
	for name, n := range l.snapshot.Counts.Queues {
		if n > 0 {
			add(name)
		}
	}
	for _, p := range l.pauses {
		add(p.Queue)
	}
	for kind := range l.executors {
		add(kind)
	}
	return names
}

func (l *refresh) queueEntity(name string) *entity {
	q := &api.LiveQueue{Name: name, Waiting: l.snapshot.Counts.Queues[name], Pause: l.pauseOf(name)}
	e := &entity{key: "queue:" + name, queue: q}
	q.Line, e.owners = l.line(name)
	return e
}

// pauseOf is the pause that keeps a queue from handing out tasks.
func (l *refresh) pauseOf(queue string) *api.Pause {
	for _, p := range l.pauses {
		if p.Queue == queue || p.Queue == "" {
			return &view.Pauses([]signalbox.Pause{p})[0]
		}
	}
	return nil
}

// liveOf is an agent as the dispatcher sees it now.
func (l *refresh) liveOf(name string) engine.LiveAgent {
	a, _ := l.cfg.Engine.LiveAgent(name)
	return a
}
