package live

import (
	"sync"
	"time"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/internal/engine"
)

// inbox gathers what may be shown otherwise since the newest look, and remembers of
// changes what no row says.
type inbox struct {
	engine *engine.Engine
	signs  chan struct{} // something came

	mu        sync.Mutex
	all       bool                 // everything is made anew
	members   bool                 // an agent was added, changed or removed
	agents    map[string]struct{}  // that may be shown otherwise
	cancelled map[string]time.Time // when tasks in flight were cancelled
	idle      map[string]time.Time // when the newest run of an agent ended
}

func (b *inbox) init(e *engine.Engine) {
	b.engine, b.signs, b.agents = e, make(chan struct{}, 1), map[string]struct{}{}
	b.cancelled, b.idle = map[string]time.Time{}, map[string]time.Time{}
	e.Observe(b.applied)
	e.ObserveAgents(b.agent)
}

// markAll has everything made anew with the next look.
func (b *inbox) markAll() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.all = true
}

// agent notes that an agent may be shown otherwise.
func (b *inbox) agent(name string) {
	b.mu.Lock()
	b.agents[name] = struct{}{}
	b.mu.Unlock()
	signal(b.signs)
}

// drain returns what came, and forgets it.
func (b *inbox) drain() (all, members bool, agents map[string]struct{}) {
	b.mu.Lock()
	defer b.mu.Unlock()
	all, members, agents = b.all, b.members, b.agents
	b.all, b.members, b.agents = false, false, map[string]struct{}{}
	return all, members, agents
}

// applied takes in a durable change. What it does to rows is seen in the store.
func (b *inbox) applied(a *engine.Applied) {
	t := &a.Task
	b.mu.Lock()
	defer b.mu.Unlock()
	switch {
	case a.Kind == signalbox.EventAgentAdded || a.Kind == signalbox.EventAgentRemoved:
		b.members = true
	case a.Kind == signalbox.EventRelease && t.ID == "": // what is withheld there is told to let go
		b.agents[t.Agent] = struct{}{}
	case a.Kind == signalbox.EventCancel && t.State.InFlight():
		if _, known := b.cancelled[t.ID]; !known {
			b.cancelled[t.ID] = b.engine.Now()
		}
	case a.From.InFlight() && !t.State.InFlight():
		delete(b.cancelled, t.ID)
		b.agents[t.Agent] = struct{}{}
		if len(b.idle) > signalbox.MaxAgents {
			clear(b.idle)
		}
		if t.State.Terminal() {
			b.idle[t.Agent] = t.EndedAt
		}
	}
}

// cancelledAt is when a task in flight was cancelled: now, where that was not
// seen.
func (b *inbox) cancelledAt(id string, inFlight int) time.Time {
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.cancelled) > 2*inFlight+100 { // what another director has ended
		clear(b.cancelled)
	}
	at, known := b.cancelled[id]
	if !known {
		at = b.engine.Now()
		b.cancelled[id] = at
	}
	return at
}

func (b *inbox) idleSince(agent string) time.Time {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.idle[agent]
}
