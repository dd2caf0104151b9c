package live

import (
	"sync"
	"time"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/internal/engine"
)

// inbox collects what the next refresh must rebuild. It also remembers times that the
// store does not have: when tasks were cancelled, and when agents became idle.
type inbox struct {
	engine *engine.Engine
	wake   chan struct{} // gets a value when an agent or a tool call changed; capacity 1

	mu            sync.Mutex
	rebuildAll    bool
	agentsChanged bool                 // an agent was added, changed or removed
	dirtyAgents   map[string]struct{}  // by name
	cancelled     map[string]time.Time // when tasks in flight were cancelled, by id
	idle          map[string]time.Time // when the newest run of an agent ended, by name
}

func (b *inbox) init(e *engine.Engine) {
	b.engine, b.wake, b.dirtyAgents = e, make(chan struct{}, 1), map[string]struct{}{}
	b.cancelled, b.idle = map[string]time.Time{}, map[string]time.Time{}
	e.Observe(b.applied)
	e.ObserveAgents(b.agentChanged)
}

// requestRebuild makes the next refresh rebuild everything.
func (b *inbox) requestRebuild() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.rebuildAll = true
}

// agentChanged marks an agent dirty and wakes the refresh loop.
func (b *inbox) agentChanged(name string) {
	b.mu.Lock()
	b.dirtyAgents[name] = struct{}{}
	b.mu.Unlock()
	notify(b.wake)
}

// take returns what was collected since its last call.
func (b *inbox) take() (rebuildAll, agentsChanged bool, dirtyAgents map[string]struct{}) {
	b.mu.Lock()
	defer b.mu.Unlock()
	rebuildAll, agentsChanged, dirtyAgents = b.rebuildAll, b.agentsChanged, b.dirtyAgents
	b.rebuildAll, b.agentsChanged, b.dirtyAgents = false, false, map[string]struct{}{}
	return rebuildAll, agentsChanged, dirtyAgents
}

// applied records a durable change, if a refresh cannot find it by comparing snapshots of
// the store.
func (b *inbox) applied(a *engine.Applied) {
	t := &a.Task
	b.mu.Lock()
	defer b.mu.Unlock()
	switch {
	case a.Kind == signalbox.EventAgentAdded || a.Kind == signalbox.EventAgentRemoved:
		b.agentsChanged = true
	case a.Kind == signalbox.EventRelease && t.ID == "": // the agent was released and may be offered tasks again
		b.dirtyAgents[t.Agent] = struct{}{}
	case a.Kind == signalbox.EventCancel && t.State.InFlight():
		if _, known := b.cancelled[t.ID]; !known {
			b.cancelled[t.ID] = b.engine.Now()
		}
	case a.From.InFlight() && !t.State.InFlight():
		delete(b.cancelled, t.ID)
		b.dirtyAgents[t.Agent] = struct{}{}
		if len(b.idle) > signalbox.MaxAgents {
			clear(b.idle)
		}
		if t.State.Terminal() {
			b.idle[t.Agent] = t.EndedAt
		}
	}
}

// cancelledAt is when a task in flight was cancelled. A cancel that was not observed, such
// as one before this process started, counts from now. inFlight is the number of tasks in
// flight; it limits what is remembered.
func (b *inbox) cancelledAt(id string, inFlight int) time.Time {
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.cancelled) > 2*inFlight+100 { // tasks ended by other directors stay in the map
		clear(b.cancelled)
	}
	at, known := b.cancelled[id]
	if !known {
		at = b.engine.Now()
		b.cancelled[id] = at
	}
	return at
}

// idleSince is when the newest run of an agent ended; zero if none was seen.
func (b *inbox) idleSince(agent string) time.Time {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.idle[agent]
}
