package httpapi

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
	// liveHeads is how many of a line are shown.
	liveHeads = 10
	// shownWaiters bounds the waiters of a tool queue in the stream.
	shownWaiters = 20
	// turnEvery and inTurn say how many agents at work are looked at though nothing
	// was announced of them, in turns: their heartbeats announce nothing.
	turnEvery = time.Second
	inTurn    = 10
	// figuresFor is after how long an estimate may be another one by time alone.
	figuresFor = time.Second
)

// builder makes entities out of the store, the agents and the tool queues, and
// remembers what they were made of: what is the same as before is not made anew.
type builder struct {
	d     *Server
	inbox *inbox
	made  map[string]*entity // projection.shown: read only

	entry     int64 // of the journal, up to which all was told
	shot      store.Snapshot
	pauses    []signalbox.Pause // in force
	slots     map[string][]signalbox.Slot
	inFlight  map[string]*signalbox.Task // of shot, by id
	rows      map[string]signalbox.Agent // as they are stored, without the executors
	executors map[string]bool            // queues of the director's own
	agents    map[string]*liveAgent
	troubled  map[string]bool // of the agents: that need a person
	up        int             // of the agents
	offered   int             // slots of all agents
	lines     map[string]bool // queues that are entities
	queues    []toolqueue.Status
	calls     map[string]api.LiveCall // by task

	load    loadHistory
	tally   tally
	plans   plans
	first   map[string]time.Time // since when something needs a person
	due     dueHeap
	turn    []string  // agents at work that are still to be looked at in this turn
	turned  time.Time // by the real clock
	figured time.Time // when the estimates were looked at
	again   bool      // a look failed: everything is made anew
}

func (b *builder) init(d *Server, in *inbox, made map[string]*entity) {
	b.d, b.inbox, b.made, b.again = d, in, made, true
	b.first, b.lines = map[string]time.Time{}, map[string]bool{}
	b.agents, b.troubled = map[string]*liveAgent{}, map[string]bool{}
}

// look is one look, and what it finds.
type look struct {
	*builder
	ctx   context.Context
	now   time.Time
	whole whole

	// What is to be made anew.
	dirtyAgents, dirtyQueues, dirtyTasks map[string]bool

	shown  []*entity // that are new or changed
	gone   map[string]*entity
	change delta
	known  bool // the change is all that is another
}

// look takes in what has changed. watched says that somebody wants to know the
// change.
func (b *builder) look(ctx context.Context, watched bool) (*look, error) {
	l := &look{
		builder: b, ctx: ctx, now: b.d.engine.Now(),
		dirtyAgents: map[string]bool{}, dirtyQueues: map[string]bool{}, dirtyTasks: map[string]bool{},
		gone: map[string]*entity{},
	}
	all, members, agents := b.inbox.take() // before the store is read: what comes from now on is for the next look
	all, b.again = all || b.again, true
	for name := range agents {
		l.dirtyAgents[name] = true
	}
	shot, err := b.d.engine.Read().Snapshot(ctx, liveHeads)
	if err != nil {
		return nil, err
	}
	started := b.rows == nil
	news := &changes{wanted: watched, ids: map[string]bool{}, schedules: map[string]bool{}, agents: l.dirtyAgents}
	if !started {
		if err := b.read(ctx, b.entry, shot.Entry, news); err != nil {
			return nil, err
		}
	}
	if members || all || news.members || started {
		if err := l.readAgents(); err != nil {
			return nil, err
		}
	}
	l.takeStore(shot)
	l.takeTools(all)
	l.takeTime(all)
	if all {
		l.everything()
	}
	l.make()
	l.sum()
	if started {
		if err := b.tally.seed(ctx, b.d.engine.Read(), l.now, shot.Entry); err != nil {
			b.rows = nil
			return nil, err
		}
	} else if err := l.moved(news); err != nil {
		return nil, err
	}
	l.finish(started, news)
	b.entry, b.again = shot.Entry, false
	return l, nil
}

// finish adds what is of the whole.
func (l *look) finish(started bool, news *changes) {
	w := &l.whole
	w.at, w.pauses, w.inFlight = l.now, l.pauses, l.shot.InFlight
	for i := range l.queues {
		w.capacity = append(w.capacity, l.queues[i].Name)
	}
	l.tally.into(&w.totals, l.now)
	w.pressure = l.load.sample(&w.totals, l.now)
	w.health = l.outlook()
	l.known = !started && !news.tooMuch && news.wanted
	l.change.entities = append(l.shown[:len(l.shown):len(l.shown)], l.change.entities...)
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

// put adds an entity, unless it is as it was.
func (l *look) put(e *entity) {
	rendered(e)
	if before := l.made[e.key]; before == nil || !bytes.Equal(before.data, e.data) {
		l.shown = append(l.shown, e)
	}
}

// drop takes an entity away.
func (l *look) drop(key string) {
	if e := l.made[key]; e != nil {
		l.gone[key] = e
	}
}

// readAgents reads which agents there are.
func (l *look) readAgents() error {
	all, err := l.d.engine.Read().Agents(l.ctx)
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
	for _, a := range l.d.engine.LiveAgents() {
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

// takeStore compares the store with what it was, and notes what is another.
func (l *look) takeStore(shot store.Snapshot) {
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
	for queue := range keysOfBoth(l.shot.Counts.Queues, shot.Counts.Queues) {
		same := func(a, b signalbox.Task) bool { return a.ID == b.ID && a.Rev == b.Rev }
		if l.shot.Counts.Queues[queue] != shot.Counts.Queues[queue] || !slices.EqualFunc(l.shot.Heads[queue], shot.Heads[queue], same) {
			l.dirtyQueues[queue] = true
		}
	}
	l.shot, l.inFlight, l.slots = shot, inFlight, slots
	pauses := slices.DeleteFunc(shot.Pauses, func(p signalbox.Pause) bool { return p.UntilMS != 0 && p.UntilMS <= l.now.UnixMilli() })
	if !slices.Equal(pauses, l.pauses) {
		for _, p := range slices.Concat(pauses, l.pauses) {
			l.dirtyQueues[p.Queue] = true
		}
		l.pauses = pauses
	}
	if l.dirtyQueues[""] { // a pause of all
		l.everything()
	}
}

func (l *look) dirtyTask(t *signalbox.Task) {
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

// everything has all made anew, and takes away what is there no more.
func (l *look) everything() {
	for key, e := range l.made {
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
	for queue := range l.shot.Counts.Queues {
		l.dirtyQueues[queue] = true
	}
}

// takeTime notes what is shown otherwise by time alone, and the agents whose turn it is.
func (l *look) takeTime(all bool) {
	for _, name := range l.due.until(l.now) {
		l.dirtyAgents[name] = true
	}
	if now := time.Now(); now.Sub(l.turned) >= turnEvery {
		l.turned = now
		if len(l.turn) == 0 {
			l.turn = slices.Sorted(maps.Keys(l.slots))
		}
		n := min(inTurn, len(l.turn))
		for _, name := range l.turn[:n] {
			l.dirtyAgents[name] = true
		}
		l.turn = l.turn[n:]
	}
	if now := time.Now(); now.Sub(l.figured) >= figuresFor || all {
		l.figured = now
		for queue, head := range l.shot.Heads {
			if !l.sameEstimates(queue, head) {
				l.dirtyQueues[queue] = true
			}
		}
	}
}

// make makes everything anew that is dirty.
func (l *look) make() {
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
			l.put(l.queueEntity(queue))
		case own && known:
			l.dirtyAgents[agent] = true
		}
	}
	for name := range l.dirtyAgents {
		if row, known := l.rows[name]; known {
			l.put(l.agentEntity(&row))
		}
	}
	for id := range l.dirtyTasks { // of the executors, and of agents that are not known
		if t := l.inFlight[id]; t != nil {
			row := l.taskRow(t, l.liveOf(t.Agent))
			l.put(&entity{key: taskKey(id), task: &row, owner: t.Owner})
		}
	}
}

// lineNames are the lines that no single agent owns, and those of agents that
// are not known.
func (l *look) lineNames() map[string]bool {
	names := map[string]bool{signalbox.QueueWork: true}
	add := func(name string) {
		agent, one := signalbox.QueueAgent(name)
		_, known := l.rows[agent]
		if _, bypass := signalbox.QueueBypass(name); name != "" && !bypass && !(one && known) {
			names[name] = true
		}
	}
	for name, n := range l.shot.Counts.Queues {
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

func (l *look) queueEntity(name string) *entity {
	q := &api.LiveQueue{Name: name, Waiting: l.shot.Counts.Queues[name], Pause: l.pauseOf(name)}
	e := &entity{key: "queue:" + name, queue: q}
	q.Line, e.owners = l.line(name)
	return e
}

// pauseOf is the pause that keeps a queue from handing out tasks.
func (l *look) pauseOf(queue string) *api.Pause {
	for _, p := range l.pauses {
		if p.Queue == queue || p.Queue == "" {
			return &view.Pauses([]signalbox.Pause{p})[0]
		}
	}
	return nil
}

// liveOf is an agent as the dispatcher sees it now.
func (l *look) liveOf(name string) engine.LiveAgent {
	a, _ := l.d.engine.LiveAgent(name)
	return a
}
