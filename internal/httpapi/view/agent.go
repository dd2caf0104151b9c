package view

import (
	"slices"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/api"
	"github.com/signalbox-ai/signalbox/internal/engine"
)

// Agent is the API form of an agent: its stored row, its state at the dispatcher, and the
// tasks in its slots.
func Agent(row *signalbox.Agent, live engine.LiveAgent, slots []api.RunningTask) api.Agent {
	running, isolated := apart(slots)
	v := api.Agent{
		Name: row.Name, Kind: row.Kind, URL: row.URL, Slots: row.Slots, Fencing: row.Fencing, Source: string(row.Source),
		Version: row.Version, WorkDir: row.WorkDir, Message: live.Message, InUse: len(running), Running: running,
		LastHeard: Time(live.LastHeard), LastProgress: Time(live.LastProgress),
		IsolatedSlots: live.IsolatedSlots, Isolated: isolated, Terminal: live.Terminal,
	}
	if row.Source == signalbox.AgentPull {
		v.URL = "" // the row has an instance name, not an address
	}
	if live.Up { // offers follow what the agent itself reports
		v.Kind, v.Slots, v.Fencing = live.Kind, live.Slots, live.Fencing
	}
	if c := live.Closed; c != nil {
		v.Closed = &api.AgentClosed{Reason: c.Text, Failures: c.Failures, Since: c.Since.UTC(), RetryAt: c.Until.UTC()}
	}
	works := slices.ContainsFunc(running, func(t api.RunningTask) bool { return !t.Withheld })
	switch {
	case live.Name == "":
		v.State, v.Message = "down", "not heard from yet"
	case !live.Up:
		v.State = "down"
	case works:
		v.State = "working"
	case v.Closed != nil:
		v.State = "closed"
	case live.Held || len(running) > 0:
		v.State = "withheld"
	default:
		v.State = "idle"
	}
	return v
}

// apart separates the isolated executions, and numbers their slots like their agent.
func apart(slots []api.RunningTask) (running, isolated []api.RunningTask) {
	for _, t := range slots {
		if !signalbox.Isolated(t.Slot) {
			running = append(running, t)
			continue
		}
		t.Slot -= signalbox.FirstIsolatedSlot
		isolated = append(isolated, t)
	}
	return running, isolated
}
