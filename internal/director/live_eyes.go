package director

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/api"
	"github.com/signalbox-ai/signalbox/internal/engine"
	"github.com/signalbox-ai/signalbox/internal/store"
	"github.com/signalbox-ai/signalbox/toolqueue"
)

const (
	// liveHeads is how many of a line are shown.
	liveHeads = 10
	// rowsFor is how long the rows of agents are good for where they are many:
	// what changes in them is seldom of interest at once.
	rowsFor  = 5 * time.Second
	manyRows = 200
	// shownWaiters bounds the waiters of a tool queue in the stream.
	shownWaiters = 20
)

// eyes take looks, and remember what a single look cannot see. One look is
// taken at a time; what observers write has a lock of its own.
type eyes struct {
	d *Director

	rows   []signalbox.Agent
	rowsAt time.Time // by the real clock
	pulse  pulse
	tally  tally
	plans  plans
	first  map[string]time.Time // since when something needs a person
	tools  uint64               // mark of the tool queues as last seen

	mu        sync.Mutex
	cancelled map[string]time.Time // when tasks in flight were cancelled
	idle      map[string]time.Time // when the newest run of an agent ended
}

func (e *eyes) init(d *Director) {
	e.d = d
	e.first, e.cancelled, e.idle = map[string]time.Time{}, map[string]time.Time{}, map[string]time.Time{}
	d.engine.Observe(e.observe)
}

// observe notes what no row says.
func (e *eyes) observe(a *engine.Applied) {
	t := &a.Task
	cancelled, done := a.Kind == signalbox.EventCancel && t.State.InFlight(), a.From.InFlight() && !t.State.InFlight()
	if !cancelled && !done {
		return
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if cancelled {
		if _, known := e.cancelled[t.ID]; !known {
			e.cancelled[t.ID] = e.d.engine.Now()
		}
		return
	}
	delete(e.cancelled, t.ID)
	if len(e.idle) > signalbox.MaxAgents {
		clear(e.idle)
	}
	if t.State.Terminal() {
		e.idle[t.Agent] = t.EndedAt
	}
}

// view is what a look has to go by.
type view struct {
	ctx    context.Context
	eyes   *eyes
	now    time.Time
	shot   store.Snapshot
	live   map[string]engine.LiveAgent
	queues []toolqueue.Status
	calls  map[string]*api.LiveCall    // by task
	flying map[string]*api.LiveTask    // tasks in flight, by id
	slots  map[string][]signalbox.Slot // by agent
	pauses []signalbox.Pause           // in force
}

// look sees everything as it is.
func (e *eyes) look(ctx context.Context) (*scene, error) {
	v, err := e.view(ctx)
	if err != nil {
		return nil, err
	}
	s := &scene{at: v.now, entry: v.shot.Entry, parts: map[string]*part{}, pauses: v.pauses}
	v.addAgents(s)
	v.addQueues(s)
	v.addCapacity(s)
	v.addTasks(s)
	v.sum(s)
	s.pressure = e.pulse.sample(&s.totals, v.now)
	s.health = v.outlook(s)
	return s, nil
}

func (e *eyes) view(ctx context.Context) (*view, error) {
	read := e.d.engine.Read()
	v := &view{ctx: ctx, eyes: e, now: e.d.engine.Now(), live: map[string]engine.LiveAgent{}, flying: map[string]*api.LiveTask{}, slots: map[string][]signalbox.Slot{}}
	var err error
	if v.shot, err = read.Snapshot(ctx, liveHeads); err != nil {
		return nil, err
	}
	if len(e.rows) < manyRows || time.Since(e.rowsAt) > rowsFor {
		if e.rows, err = read.Agents(ctx); err != nil {
			return nil, err
		}
		e.rowsAt = time.Now()
	}
	for _, a := range e.d.engine.LiveAgents() {
		v.live[a.Name] = a
	}
	v.pauses = slices.DeleteFunc(v.shot.Pauses, func(p signalbox.Pause) bool { return p.UntilMS != 0 && p.UntilMS <= v.now.UnixMilli() })
	for _, s := range v.shot.Slots {
		v.slots[s.Agent] = append(v.slots[s.Agent], s)
	}
	if e.d.cfg.Tools != nil {
		v.queues = e.d.cfg.Tools.Queues()
		e.tools = toolsMark(v.queues)
	}
	v.findCalls()
	v.findTasks()
	return v, nil
}

// toolsMoved reports whether the tool queues are others than when they were
// last seen: they announce nothing.
func (s *sight) toolsMoved() bool {
	if s.d.cfg.Tools == nil {
		return false
	}
	s.looking.Lock()
	defer s.looking.Unlock()
	return toolsMark(s.d.cfg.Tools.Queues()) != s.eyes.tools
}

func toolsMark(queues []toolqueue.Status) uint64 {
	m := newMarking()
	for i := range queues {
		q := &queues[i]
		m.text(q.Name).num(int64(q.Concurrent), int64(q.Depth), int64(len(q.Holders)))
		for _, h := range q.Holders {
			m.text(h.Session, h.Tool, h.Execution).num(h.Since.UnixNano())
		}
		for _, w := range q.Waiters[:min(len(q.Waiters), shownWaiters)] {
			m.text(w.Session, w.Execution).num(w.Since.UnixNano())
		}
	}
	return m.sum()
}

// addCapacity adds the tool queues.
func (v *view) addCapacity(s *scene) {
	for i := range v.queues {
		q := v.queues[i]
		q.Waiters = q.Waiters[:min(len(q.Waiters), shownWaiters)]
		s.add(&part{key: "capacity:" + q.Name, tools: &q, mark: newMarking().json(toolQueueView(&q, caller{})).sum()})
	}
}

// addQueues adds the lines that no single agent owns, and those of agents that
// are not known.
func (v *view) addQueues(s *scene) {
	names := map[string]bool{signalbox.QueueWork: true}
	for name, n := range v.shot.Counts.Queues {
		if _, one := signalbox.QueueBypass(name); n > 0 && !one {
			names[name] = true
		}
	}
	for _, p := range v.pauses {
		names[p.Queue] = p.Queue != ""
	}
	for name := range v.live {
		if kind, own := signalbox.ExecutorKind(name); own {
			names[kind] = true
		}
	}
	for _, name := range sortedNames(names) {
		agent, one := signalbox.QueueAgent(name)
		if _, bypass := signalbox.QueueBypass(name); bypass || one && s.parts["agent:"+agent] != nil {
			continue
		}
		q := &api.LiveQueue{Name: name, Waiting: v.shot.Counts.Queues[name], Pause: v.pauseOf(name)}
		p := &part{key: "queue:" + name, queue: q}
		m := newMarking().num(int64(q.Waiting)).json(q.Pause)
		q.Line, p.owners = v.line(name, m)
		p.mark = m.sum()
		s.add(p)
	}
}

func sortedNames(names map[string]bool) []string {
	var list []string
	for name, wanted := range names {
		if wanted {
			list = append(list, name)
		}
	}
	slices.Sort(list)
	return list
}

// pauseOf is the pause that keeps a queue from handing out tasks.
func (v *view) pauseOf(queue string) *api.Pause {
	for _, p := range v.pauses {
		if p.Queue == queue || p.Queue == "" {
			return &pauseViews([]signalbox.Pause{p})[0]
		}
	}
	return nil
}
