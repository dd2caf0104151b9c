package director

import (
	"encoding/binary"
	"encoding/json"
	"hash/maphash"
	"maps"
	"slices"
	"time"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/api"
	"github.com/signalbox-ai/signalbox/toolqueue"
)

// scene is everything as it was at one moment. It is not changed once it is
// made.
type scene struct {
	at       time.Time
	entry    int64            // of the journal at that moment
	parts    map[string]*part // by key
	order    []*part          // the same, as they are sent
	totals   api.Totals
	health   outlook
	pauses   []signalbox.Pause
	pressure []api.Pressure // oldest first
}

// part is an entity of the stream: it is sent whole when anything of it
// changes. One of its fields is set.
type part struct {
	key  string // kind:name, as in Live.Gone
	mark uint64 // another one says that it has changed

	agent    *api.LiveAgent
	queue    *api.LiveQueue
	owners   []string // of the tasks of the queue's line
	tools    *toolqueue.Status
	task     *api.LiveTask
	schedule *api.LiveSchedule
	owner    string // of the task or schedule
	forAgent string // of the schedule
}

// visible reports whether a caller may know of it.
func (p *part) visible(who signalbox.Principal) bool {
	switch {
	case p.agent != nil:
		return who.MayUse(p.agent.Name)
	case p.queue != nil:
		name, one := signalbox.OnlyAgent(p.queue.Name)
		return !one || who.MayUse(name)
	case p.task != nil:
		return who.Sees(p.owner, p.task.Queue, p.task.Agent)
	case p.schedule != nil:
		return who.Sees(p.owner, "", p.forAgent)
	}
	return true
}

// into adds the part to what is sent, as the caller may see it.
func (p *part) into(out *api.Live, c caller) {
	switch {
	case p.agent != nil:
		out.Agents = append(out.Agents, *p.agent)
	case p.queue != nil:
		out.Queues = append(out.Queues, p.queueFor(c))
	case p.tools != nil:
		out.Capacity = append(out.Capacity, toolQueueView(p.tools, c))
	case p.task != nil:
		out.Tasks = append(out.Tasks, *p.task)
	case p.schedule != nil:
		out.Schedules = append(out.Schedules, *p.schedule)
	}
}

func (p *part) queueFor(c caller) api.LiveQueue {
	q := *p.queue
	if !c.limited() {
		return q
	}
	q.Line = []api.LiveTask{}
	for i, t := range p.queue.Line {
		if c.who.Sees(p.owners[i], t.Queue, t.Agent) {
			q.Line = append(q.Line, t)
		}
	}
	return q
}

// add puts a part into the scene.
func (s *scene) add(p *part) {
	s.parts[p.key] = p
	s.order = append(s.order, p)
}

// whole is everything, as one step from nothing.
func (s *scene) whole() *step {
	pauses := s.pauses
	return &step{at: s.at, parts: s.order, totals: &s.totals, health: &s.health, pauses: &pauses, pressure: s.pressure}
}

// until is what changed from s to a later scene; nil: nothing. moved are the
// tasks and schedules that changed and stand in no scene. again says that the
// verdict was another one in between.
func (s *scene) until(next *scene, moved []*part, again bool) *step {
	out := &step{at: next.at}
	for _, p := range next.order {
		if before := s.parts[p.key]; before == nil || before.mark != p.mark {
			out.parts = append(out.parts, p)
		}
	}
	told := map[string]bool{}
	for _, p := range moved {
		told[p.key] = true
		if p.mark == goneMark {
			out.gone = append(out.gone, p)
		} else {
			out.parts = append(out.parts, p)
		}
	}
	for _, p := range s.order {
		if next.parts[p.key] == nil && !told[p.key] {
			out.gone = append(out.gone, p)
		}
	}
	if next.totals != s.totals {
		out.totals = &next.totals
	}
	if again || next.health.mark != s.health.mark {
		out.health = &next.health
	}
	if !slices.Equal(next.pauses, s.pauses) {
		pauses := next.pauses
		out.pauses = &pauses
	}
	out.pressure = newer(next.pressure, s.pressure)
	if len(out.parts)+len(out.gone)+len(out.pressure) == 0 && out.totals == nil && out.health == nil && out.pauses == nil {
		return nil
	}
	return out
}

// goneMark marks a part that exists no more.
const goneMark = 0

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

// together makes one step of several that follow each other.
func together(steps []*step) *step {
	last := steps[len(steps)-1]
	out := &step{epoch: last.epoch, revision: last.revision, at: last.at}
	parts, gone := map[string]*part{}, map[string]*part{}
	var order []string
	for _, s := range steps {
		for _, p := range s.parts {
			if parts[p.key] == nil {
				order = append(order, p.key)
			}
			parts[p.key] = p
			delete(gone, p.key)
		}
		for _, p := range s.gone {
			delete(parts, p.key)
			gone[p.key] = p
		}
		out.totals, out.health, out.pauses = latest(out.totals, s.totals), latest(out.health, s.health), latest(out.pauses, s.pauses)
		out.pressure = append(out.pressure, s.pressure...)
	}
	for _, key := range order {
		if p := parts[key]; p != nil {
			out.parts = append(out.parts, p)
			delete(parts, key) // one that went and came again stands there twice
		}
	}
	for _, key := range slices.Sorted(maps.Keys(gone)) {
		out.gone = append(out.gone, gone[key])
	}
	return out
}

func latest[T any](before, now *T) *T {
	if now != nil {
		return now
	}
	return before
}

// live is a step as a caller may see it.
func (s *step) live(c caller) api.Live {
	out := api.Live{Revision: s.revision, At: s.at, Epoch: c.epoch(s.epoch), Totals: s.totals, Pressure: s.pressure}
	if s.health != nil {
		verdict := s.health.verdict(c.who)
		out.Health = &verdict
	}
	if s.pauses != nil {
		pauses := pauseViews(visiblePauses(*s.pauses, c))
		out.Pauses = &pauses
	}
	for _, p := range s.parts {
		if p.visible(c.who) {
			p.into(&out, c)
		}
	}
	for _, p := range s.gone {
		if p.visible(c.who) {
			out.Gone = append(out.Gone, p.key)
		}
	}
	return out
}

// markSeed makes the marks of this process.
var markSeed = maphash.MakeSeed()

// marking makes the mark of a part out of all that it shows.
type marking struct{ h maphash.Hash }

func newMarking() *marking {
	m := &marking{}
	m.h.SetSeed(markSeed)
	return m
}

func (m *marking) text(texts ...string) *marking {
	for _, t := range texts {
		m.h.WriteString(t)
		m.h.WriteByte(0)
	}
	return m
}

func (m *marking) num(numbers ...int64) *marking {
	var b [8]byte
	for _, n := range numbers {
		binary.LittleEndian.PutUint64(b[:], uint64(n))
		m.h.Write(b[:])
	}
	return m
}

func (m *marking) time(t *time.Time) *marking {
	if t == nil {
		return m.num(0)
	}
	return m.num(t.UnixNano())
}

// json adds a value that has no parts worth naming.
func (m *marking) json(v any) *marking {
	data, _ := json.Marshal(v) // the types of the api package always marshal
	m.h.Write(data)
	return m
}

func (m *marking) sum() uint64 { return max(m.h.Sum64(), goneMark+1) }
