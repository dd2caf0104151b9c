package pull

import (
	"encoding/json"

	"github.com/signalbox-ai/signalbox/api"
	"github.com/signalbox-ai/signalbox/internal/execution"
	"github.com/signalbox-ai/signalbox/internal/store"
)

// Heard returns the agents that sent requests to this director since the last call, for the
// other directors, which cannot ask them.
func (l *Lanes) Heard() []store.Heard {
	l.Mu.Lock()
	defer l.Mu.Unlock()
	var all []store.Heard
	for _, a := range l.Lanes {
		if !a.heardHere {
			continue
		}
		a.heardHere = false
		s := api.AgentStatus{
			Type: "agent", Name: a.Name, AgentKind: a.Row.Kind, State: "idle", Slots: a.reported.slots, IsolatedSlots: a.reported.isolated,
			HighestFence: a.reported.fence, Director: l.ID, Fencing: true, Sessions: true,
		}
		switch {
		case a.Presence.Leaving():
			s.State = "stopping"
		case a.InUse(false) > 0:
			s.State = "working"
		}
		status, err := json.Marshal(s)
		if err != nil { // cannot happen
			continue
		}
		all = append(all, store.Heard{Agent: a.Name, At: a.lastHeard, Status: status})
	}
	return all
}

// HeardElsewhere records when these agents last sent requests to any director.
func (l *Lanes) HeardElsewhere(news []store.Heard) {
	wall, now := l.Engine.Now(), l.opts.Monotonic()
	l.Mu.Lock()
	defer l.Mu.Unlock()
	for _, h := range news {
		a := l.Lanes[h.Agent]
		if a == nil || !h.At.After(a.lastHeard) {
			continue
		}
		var s api.AgentStatus
		if json.Unmarshal(h.Status, &s) != nil {
			continue
		}
		age := max(0, wall.Sub(h.At))
		a.lastHeard = h.At
		if s.Slots > 0 {
			a.setReported(report{slots: s.Slots, isolated: s.IsolatedSlots, fence: s.HighestFence, held: a.reported.held, steps: a.reported.steps})
		}
		switch {
		case s.State == "stopping":
			a.Presence.Gone(now, execution.StoppingMessage)
		case age < l.opts.Silence:
			a.Presence.Heard(now.Add(-age))
		default:
			a.Presence.Gone(now, silentFor(age))
		}
		l.Update(a)
	}
}
