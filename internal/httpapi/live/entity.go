package live

import (
	"cmp"
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/api"
	"github.com/signalbox-ai/signalbox/internal/httpapi/httpio"
	"github.com/signalbox-ai/signalbox/internal/httpapi/view"
	"github.com/signalbox-ai/signalbox/toolqueue"
)

// entity is one thing that the stream shows, rendered once for all readers who may see
// all of it. It is sent whole when anything of it changes, and is not changed itself. One
// of its pointers is set.
type entity struct {
	key  string // kind:name, as in Live.Gone
	data []byte // JSON

	agent    *api.LiveAgent
	queue    *api.LiveQueue
	owners   []string // of the tasks of the queue's line
	tools    *toolqueue.Status
	task     *api.LiveTask
	schedule *api.LiveSchedule
	owner    string // of the task or schedule
	forAgent string // of the schedule
}

// rendered makes the bytes that readers without limits share.
func rendered(e *entity) *entity {
	e.data = e.json(signalbox.Principal{})
	return e
}

func (e *entity) json(who signalbox.Principal) []byte {
	var v any
	switch {
	case e.agent != nil:
		v = e.agent
	case e.queue != nil:
		v = e.queueFor(who)
	case e.tools != nil:
		v = view.ToolQueue(e.tools, who)
	case e.task != nil:
		v = e.task
	default:
		v = e.schedule
	}
	data, _ := json.Marshal(v) // the types of the api package always marshal
	return data
}

func (e *entity) queueFor(who signalbox.Principal) *api.LiveQueue {
	if !who.Limited() {
		return e.queue
	}
	q := *e.queue
	q.Line = []api.LiveTask{}
	for i, t := range e.queue.Line {
		if who.Sees(e.owners[i], t.Queue, t.Agent) {
			q.Line = append(q.Line, t)
		}
	}
	return &q
}

// visible reports whether a caller may know of it.
func (e *entity) visible(who signalbox.Principal) bool {
	switch {
	case e.agent != nil:
		return who.MayUse(e.agent.Name)
	case e.queue != nil:
		name, one := signalbox.OnlyAgent(e.queue.Name)
		return !one || who.MayUse(name)
	case e.task != nil:
		return who.Sees(e.owner, e.task.Queue, e.task.Agent)
	case e.schedule != nil:
		return who.Sees(e.owner, "", e.forAgent)
	}
	return true
}

// into adds the entity to what is sent, as the caller may see it.
func (e *entity) into(out *message, who signalbox.Principal) {
	data := json.RawMessage(e.data)
	if who.Limited() && (e.queue != nil || e.tools != nil) {
		data = e.json(who)
	}
	list := &out.Schedules
	switch {
	case e.agent != nil:
		list = &out.Agents
	case e.queue != nil:
		list = &out.Queues
	case e.tools != nil:
		list = &out.Capacity
	case e.task != nil:
		list = &out.Tasks
	}
	*list = append(*list, data)
}

// message is api.Live with entities that are rendered already.
type message struct {
	Revision  int64             `json:"revision"`
	At        time.Time         `json:"at"`
	Epoch     string            `json:"epoch"`
	Totals    *api.Totals       `json:"totals,omitempty"`
	Health    *api.Verdict      `json:"health,omitempty"`
	Agents    []json.RawMessage `json:"agents,omitempty"`
	Queues    []json.RawMessage `json:"queues,omitempty"`
	Capacity  []json.RawMessage `json:"capacity,omitempty"`
	Tasks     []json.RawMessage `json:"tasks,omitempty"`
	Schedules []json.RawMessage `json:"schedules,omitempty"`
	Pauses    *[]api.Pause      `json:"paused,omitempty"`
	Pressure  []api.Pressure    `json:"pressure,omitempty"`
	Gone      []string          `json:"gone,omitempty"`
}

// state is what there is beside the entities, at one moment.
type state struct {
	at       time.Time
	totals   api.Totals
	health   findings
	pauses   []signalbox.Pause
	pressure []api.Pressure   // oldest first
	inFlight []signalbox.Task // in the order in which they are sent
	capacity []string         // the names of the tool queues, in order
}

// delta is what is another from one revision to the next.
type delta struct {
	epoch    string
	revision int64
	at       time.Time
	entities []*entity // that are new or changed
	gone     []*entity
	totals   *api.Totals
	health   *findings
	pauses   *[]signalbox.Pause
	pressure []api.Pressure
	frame    []byte // for readers without limits
}

func (c *delta) empty() bool {
	return len(c.entities)+len(c.gone)+len(c.pressure) == 0 && c.totals == nil && c.health == nil && c.pauses == nil
}

// compare adds what is another beside the entities. again says that the verdict was
// another one in between.
func (c *delta) compare(before, now *state, again bool) {
	c.at = now.at
	if now.totals != before.totals {
		c.totals = &now.totals
	}
	if again || !now.health.equal(&before.health) {
		c.health = &now.health
	}
	if !slices.Equal(now.pauses, before.pauses) {
		c.pauses = &now.pauses
	}
	c.pressure = newer(now.pressure, before.pressure)
}

// newer returns the samples that came since.
func newer(now, before []api.Pressure) []api.Pressure {
	if len(before) == 0 || len(now) == 0 {
		return now
	}
	last := before[len(before)-1].At
	at := slices.IndexFunc(now, func(p api.Pressure) bool { return p.At.After(last) })
	if at < 0 {
		return nil
	}
	return now[at:]
}

// mergeDeltas makes one change of several that follow each other.
func mergeDeltas(changes []*delta) *delta {
	last := changes[len(changes)-1]
	out := &delta{epoch: last.epoch, revision: last.revision, at: last.at}
	entities, gone := map[string]*entity{}, map[string]*entity{}
	var order []string
	for _, c := range changes {
		for _, e := range c.entities {
			if entities[e.key] == nil {
				order = append(order, e.key)
			}
			entities[e.key] = e
			delete(gone, e.key)
		}
		for _, e := range c.gone {
			delete(entities, e.key)
			gone[e.key] = e
		}
		out.totals, out.health, out.pauses = cmp.Or(c.totals, out.totals), cmp.Or(c.health, out.health), cmp.Or(c.pauses, out.pauses)
		out.pressure = append(out.pressure, c.pressure...)
	}
	for _, key := range order {
		if e := entities[key]; e != nil {
			out.entities = append(out.entities, e)
			delete(entities, key) // one that went and came again stands there twice
		}
	}
	for _, key := range slices.Sorted(maps.Keys(gone)) {
		out.gone = append(out.gone, gone[key])
	}
	return out
}

// event is the change as a caller may see it.
func (c *delta) event(name string, to signalbox.Principal) ([]byte, error) {
	out := message{Revision: c.revision, At: c.at, Epoch: epochFor(c.epoch, to), Totals: c.totals, Pressure: c.pressure}
	if c.health != nil {
		verdict := c.health.verdict(to)
		out.Health = &verdict
	}
	if c.pauses != nil {
		pauses := view.Pauses(view.VisiblePauses(*c.pauses, to))
		out.Pauses = &pauses
	}
	for _, e := range c.entities {
		if e.visible(to) {
			e.into(&out, to)
		}
	}
	for _, e := range c.gone {
		if e.visible(to) {
			out.Gone = append(out.Gone, e.key)
		}
	}
	data, err := json.Marshal(&out)
	if err != nil {
		return nil, err
	}
	b := make([]byte, 0, len(data)+96)
	b = append(b, "id: "...)
	b = append(b, place{out.Epoch, out.Revision}.String()...)
	return httpio.AppendEvent(append(b, '\n'), name, data), nil
}

// all is everything, as one change from nothing; shown is by key.
func (w *state) all(shown map[string]*entity) *delta {
	out := &delta{at: w.at, totals: &w.totals, health: &w.health, pauses: &w.pauses, pressure: w.pressure}
	for _, e := range shown {
		if e.agent != nil || e.queue != nil {
			out.entities = append(out.entities, e)
		}
	}
	slices.SortFunc(out.entities, func(a, b *entity) int { return strings.Compare(a.key, b.key) })
	for _, name := range w.capacity {
		out.entities = append(out.entities, shown[capacityKey(name)])
	}
	for i := range w.inFlight {
		out.entities = append(out.entities, shown[taskKey(w.inFlight[i].ID)])
	}
	return out
}
