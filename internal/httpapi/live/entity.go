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
	"github.com/signalbox-ai/signalbox/internal/gates"
	"github.com/signalbox-ai/signalbox/internal/httpapi/httpio"
	"github.com/signalbox-ai/signalbox/internal/httpapi/view"
	"github.com/signalbox-ai/signalbox/toolqueue"
)

// entity is one object of the view, and the unit of a delta: if a part of it changes,
// the whole entity is sent. Exactly one of its pointers is set. Entities are shared by
// all readers and immutable.
type entity struct {
	key  string // KIND:NAME, as in api.Live.Gone
	data []byte // the JSON for readers without limits

	agent     *api.LiveAgent
	queue     *api.LiveQueue
	toolQueue *toolqueue.Status
	task      *api.LiveTask
	schedule  *api.LiveSchedule
	account   *api.Account

	// Fields that determine visibility.
	owner         string   // owner of the task or schedule
	lineOwners    []string // owners of the tasks in queue.Line
	scheduleAgent string   // agent of the schedule's tasks; "" for any
	agents        []string // agents that use the account, connected or not
}

// render sets e.data and returns e.
func render(e *entity) *entity {
	e.data = e.json(signalbox.Principal{})
	return e
}

// json is the JSON of the entity for a caller who may see it.
func (e *entity) json(who signalbox.Principal) []byte {
	var v any
	switch {
	case e.agent != nil:
		v = e.agent
	case e.queue != nil:
		v = e.queueFor(who)
	case e.toolQueue != nil:
		v = view.ToolQueue(e.toolQueue, who)
	case e.task != nil:
		v = e.task
	case e.account != nil:
		v = e.accountFor(who)
	default:
		v = e.schedule
	}
	data, _ := json.Marshal(v) // the types of the api package always marshal
	return data
}

// queueFor is the queue, without tasks in its line that a caller may not see.
func (e *entity) queueFor(who signalbox.Principal) *api.LiveQueue {
	if !who.Limited() {
		return e.queue
	}
	q := *e.queue
	q.Line = []api.LiveTask{}
	for i, t := range e.queue.Line {
		if who.Sees(e.lineOwners[i], t.Queue, t.Agent) {
			q.Line = append(q.Line, t)
		}
	}
	return &q
}

// visible reports whether a caller may see the entity.
func (e *entity) visible(who signalbox.Principal) bool {
	switch {
	case e.agent != nil:
		return who.MayUse(e.agent.Name)
	case e.queue != nil:
		name, one := signalbox.OnlyAgent(e.queue.Name)
		return !one || who.MayUse(name)
	case e.task != nil:
		return who.Sees(e.owner, e.task.Queue, e.task.Agent)
	case e.account != nil:
		return !who.Limited() || slices.ContainsFunc(e.agents, who.MayUse)
	case e.schedule != nil:
		return who.Sees(e.owner, "", e.scheduleAgent)
	}
	return true
}

// appendTo appends the entity to its list in a message, in its form for a caller.
func (e *entity) appendTo(out *message, who signalbox.Principal) {
	data := json.RawMessage(e.data)
	if who.Limited() && (e.queue != nil || e.toolQueue != nil || e.account != nil) {
		data = e.json(who)
	}
	list := &out.Schedules
	switch {
	case e.agent != nil:
		list = &out.Agents
	case e.queue != nil:
		list = &out.Queues
	case e.toolQueue != nil:
		list = &out.Capacity
	case e.task != nil:
		list = &out.Tasks
	case e.account != nil:
		list = &out.Accounts
	}
	*list = append(*list, data)
}

// message is api.Live with rendered entities.
type message struct {
	Revision  int64             `json:"revision"`
	At        time.Time         `json:"at"`
	Epoch     string            `json:"epoch"`
	Totals    *api.Totals       `json:"totals,omitempty"`
	Health    *api.Verdict      `json:"health,omitempty"`
	Agents    []json.RawMessage `json:"agents,omitempty"`
	Queues    []json.RawMessage `json:"queues,omitempty"`
	Capacity  []json.RawMessage `json:"capacity,omitempty"`
	Accounts  []json.RawMessage `json:"accounts,omitempty"`
	Tasks     []json.RawMessage `json:"tasks,omitempty"`
	Schedules []json.RawMessage `json:"schedules,omitempty"`
	Pauses    *[]api.Pause      `json:"paused,omitempty"`
	Gates     *[]api.ClosedGate `json:"gates,omitempty"`
	Pressure  []api.Pressure    `json:"pressure,omitempty"`
	Gone      []string          `json:"gone,omitempty"`
}

// state is everything except the entities, as of one snapshot of the store.
type state struct {
	at         time.Time
	totals     api.Totals
	health     findings
	pauses     []signalbox.Pause
	gates      []gates.Closed
	pressure   []api.Pressure   // oldest first
	inFlight   []signalbox.Task // in the order in which a snapshot lists them
	toolQueues []string         // names, in the order in which a snapshot lists them
}

// delta is the changes from one revision to the next. Nil fields did not change.
type delta struct {
	epoch    string // for readers without limits
	revision int64
	at       time.Time
	entities []*entity // new or changed, and those that are sent only once: see addUntracked
	gone     []*entity
	totals   *api.Totals
	health   *findings
	pauses   *[]signalbox.Pause
	gates    *[]gates.Closed
	pressure []api.Pressure // new samples
	frame    []byte         // the event for readers without limits
}

func (d *delta) empty() bool {
	return len(d.entities)+len(d.gone)+len(d.pressure) == 0 && d.totals == nil && d.health == nil && d.pauses == nil && d.gates == nil
}

// compare sets the fields in which two states differ. recovered says that readers got the
// verdict storeDown after before.
func (d *delta) compare(before, now *state, recovered bool) {
	d.at = now.at
	if now.totals != before.totals {
		d.totals = &now.totals
	}
	if recovered || !now.health.equal(&before.health) {
		d.health = &now.health
	}
	if !slices.Equal(now.pauses, before.pauses) {
		d.pauses = &now.pauses
	}
	if !slices.EqualFunc(now.gates, before.gates, sameGate) {
		d.gates = &now.gates
	}
	d.pressure = newSamples(now.pressure, before.pressure)
}

// newSamples returns the samples of now that are newer than those of before.
func newSamples(now, before []api.Pressure) []api.Pressure {
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

// mergeDeltas merges consecutive deltas into one, with the revision of the last.
func mergeDeltas(deltas []*delta) *delta {
	last := deltas[len(deltas)-1]
	out := &delta{epoch: last.epoch, revision: last.revision, at: last.at}
	entities, gone := map[string]*entity{}, map[string]*entity{}
	var order []string
	for _, d := range deltas {
		for _, e := range d.entities {
			if entities[e.key] == nil {
				order = append(order, e.key)
			}
			entities[e.key] = e
			delete(gone, e.key)
		}
		for _, e := range d.gone {
			delete(entities, e.key)
			gone[e.key] = e
		}
		out.gates = cmp.Or(d.gates, out.gates)
		out.totals, out.health, out.pauses = cmp.Or(d.totals, out.totals), cmp.Or(d.health, out.health), cmp.Or(d.pauses, out.pauses)
		out.pressure = append(out.pressure, d.pressure...)
	}
	for _, key := range order {
		if e := entities[key]; e != nil {
			out.entities = append(out.entities, e)
			delete(entities, key) // order has a key twice if it was removed and came back
		}
	}
	for _, key := range slices.Sorted(maps.Keys(gone)) {
		out.gone = append(out.gone, gone[key])
	}
	return out
}

// event encodes the delta as a server-sent event, with the parts that a caller may see.
func (d *delta) event(name string, who signalbox.Principal) ([]byte, error) {
	out := message{Revision: d.revision, At: d.at, Epoch: epochFor(d.epoch, who), Totals: d.totals, Pressure: d.pressure}
	if d.health != nil {
		verdict := d.health.verdict(who)
		out.Health = &verdict
	}
	if d.pauses != nil {
		pauses := view.Pauses(view.VisiblePauses(*d.pauses, who))
		out.Pauses = &pauses
	}
	if d.gates != nil {
		closed := view.Gates(*d.gates, who)
		out.Gates = &closed
	}
	for _, e := range d.entities {
		if e.visible(who) {
			e.appendTo(&out, who)
		}
	}
	for _, e := range d.gone {
		if e.visible(who) {
			out.Gone = append(out.Gone, e.key)
		}
	}
	data, err := json.Marshal(&out)
	if err != nil {
		return nil, err
	}
	b := make([]byte, 0, len(data)+96)
	b = append(b, "id: "...)
	b = append(b, eventID{out.Epoch, out.Revision}.String()...)
	return httpio.AppendEvent(append(b, '\n'), name, data), nil
}

// full returns the state and all entities as a delta from nothing. Accounts, agents and
// queues are sorted by key.
func (s *state) full(entities map[string]*entity) *delta {
	out := &delta{at: s.at, totals: &s.totals, health: &s.health, pauses: &s.pauses, gates: &s.gates, pressure: s.pressure}
	for _, e := range entities {
		if e.agent != nil || e.queue != nil || e.account != nil {
			out.entities = append(out.entities, e)
		}
	}
	slices.SortFunc(out.entities, func(a, b *entity) int { return strings.Compare(a.key, b.key) })
	for _, name := range s.toolQueues {
		out.entities = append(out.entities, entities[capacityKey(name)])
	}
	for i := range s.inFlight {
		out.entities = append(out.entities, entities[taskKey(s.inFlight[i].ID)])
	}
	return out
}
