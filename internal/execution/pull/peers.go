package pull

import (
	"encoding/json"

	"github.com/signalbox-ai/signalbox/api"
	"github.com/signalbox-ai/signalbox/internal/store"
)

// Heard says which agents spoke to this director since it was last asked: it
// is passed on to the others, which cannot ask them.
func (l *Lanes) Heard() []store.Heard {
	l.mu.Lock()
	defer l.mu.Unlock()
	var all []store.Heard
	for _, a := range l.lanes {
		if !a.fresh {
			continue
		}
		a.fresh = false
		s := api.AgentStatus{
			Type: "agent", Name: a.name, AgentKind: a.row.Kind, State: "idle", Slots: a.said.slots, IsolatedSlots: a.said.isolated,
			HighestFence: a.said.fence, Director: l.id, Fencing: true, Sessions: true,
		}
		switch {
		case a.presence.Leaving():
			s.State = "stopping"
		case a.inUse(false) > 0:
			s.State = "working"
		}
		status, err := json.Marshal(s)
		if err != nil { // the types of the api package always marshal
			continue
		}
		all = append(all, store.Heard{Agent: a.name, At: a.at, Status: status})
	}
	return all
}

// News takes in when these agents last spoke to any director.
func (l *Lanes) News(news []store.Heard) {
	wall, now := l.engine.Now(), l.opts.Monotonic()
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, h := range news {
		a := l.lanes[h.Agent]
		if a == nil || !h.At.After(a.at) {
			continue
		}
		var s api.AgentStatus
		if json.Unmarshal(h.Status, &s) != nil {
			continue
		}
		age := max(0, wall.Sub(h.At))
		a.at = h.At
		if s.Slots > 0 {
			a.said.slots, a.said.isolated, a.said.fence, a.row.Slots = s.Slots, s.IsolatedSlots, s.HighestFence, s.Slots
		}
		switch {
		case s.State == "stopping":
			a.presence.Gone(now, itStops)
		case age < l.opts.Silence:
			a.presence.Heard(now.Add(-age))
		default:
			a.presence.Gone(now, silentFor(age))
		}
		l.tell(a)
	}
}
