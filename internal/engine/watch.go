package engine

import (
	"context"
	"sync"
	"time"

	"github.com/signalbox-ai/signalbox"
)

// Applied is a change that is durable.
type Applied struct {
	From signalbox.State     // "" for a submit
	Task signalbox.Task      // after it
	Kind signalbox.EventKind // "" for a task that was woken: that is no event of it
	By   string
	// Trace is Request.Trace, where Kind is EventSubmit or EventClaim.
	Trace string
	// Foreign says that another director made the change: who counts, leaves it
	// to that one. Partial says that Task has only what the journal tells of it:
	// ID, State, Reason, Message, Queue, Agent, Fence, Attempts, Source, Owner.
	Foreign, Partial bool
}

// NextTurn reports whether another turn of the task's session may be ready now,
// in whatever queue: its own was given up, or it came behind one whose time had
// come unnoticed.
func (a *Applied) NextTurn() bool {
	t := &a.Task
	return t.SessionID != "" && !t.State.InFlight() && (a.Kind != signalbox.EventSubmit || !t.Ready)
}

// hub tells observers and waiters of durable changes.
type hub struct {
	mu        sync.Mutex
	observers []func(*Applied)
	ofAgents  []func(name string)
	waiters   map[string]map[chan struct{}]struct{} // by task id
	journal   map[chan struct{}]struct{}
}

func (h *hub) init() {
	h.waiters = map[string]map[chan struct{}]struct{}{}
	h.journal = map[chan struct{}]struct{}{}
}

// Observe calls f after every durable change, on the goroutine that made it:
// f must be quick, must not call the engine, and keeps or changes nothing of what
// it is shown. Register observers before the
// engine is used.
func (e *Engine) Observe(f func(*Applied)) {
	e.hub.mu.Lock()
	defer e.hub.mu.Unlock()
	e.hub.observers = append(e.hub.observers, f)
}

// ObserveAgents calls f when an agent may be another than LiveAgent said, apart from when it
// was heard: with locks of who says so held, so f must be quick and must not ask. Register
// observers before the engine is used.
func (e *Engine) ObserveAgents(f func(name string)) {
	e.hub.mu.Lock()
	defer e.hub.mu.Unlock()
	e.hub.ofAgents = append(e.hub.ofAgents, f)
}

// AgentChanged tells observers that an agent may be another than LiveAgent said.
func (e *Engine) AgentChanged(name string) {
	e.hub.mu.Lock()
	observers := e.hub.ofAgents
	e.hub.mu.Unlock()
	for _, f := range observers {
		f(name)
	}
}

func (h *hub) publish(a *Applied) {
	h.mu.Lock()
	for c := range h.waiters[a.Task.ID] {
		poke(c)
	}
	observers := h.observers
	h.pokeJournal()
	h.mu.Unlock()
	for _, f := range observers {
		f(a)
	}
}

// pokeAll gives a sign to all who wait, whatever for.
func (h *hub) pokeAll() {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, waiters := range h.waiters {
		for c := range waiters {
			poke(c)
		}
	}
	h.pokeJournal()
}

func (h *hub) noted() {
	h.mu.Lock()
	h.pokeJournal()
	h.mu.Unlock()
}

func (h *hub) pokeJournal() {
	for c := range h.journal {
		poke(c)
	}
}

// poke leaves a sign in a channel of capacity 1, unless one is there.
func poke(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// watch returns a channel that gets a sign after each change of a task.
func (h *hub) watch(id string) (signs <-chan struct{}, stop func()) {
	c := make(chan struct{}, 1)
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.waiters[id] == nil {
		h.waiters[id] = map[chan struct{}]struct{}{}
	}
	h.waiters[id][c] = struct{}{}
	return c, func() {
		h.mu.Lock()
		defer h.mu.Unlock()
		delete(h.waiters[id], c)
		if len(h.waiters[id]) == 0 {
			delete(h.waiters, id)
		}
	}
}

// WatchJournal returns a channel that gets a sign when the journal grew.
// Signs coalesce: one may stand for many entries.
func (e *Engine) WatchJournal() (signs <-chan struct{}, stop func()) {
	c := make(chan struct{}, 1)
	e.hub.mu.Lock()
	defer e.hub.mu.Unlock()
	e.hub.journal[c] = struct{}{}
	return c, func() {
		e.hub.mu.Lock()
		defer e.hub.mu.Unlock()
		delete(e.hub.journal, c)
	}
}

// WatchTask returns a channel that gets a sign after each change of a task.
func (e *Engine) WatchTask(id string) (signs <-chan struct{}, stop func()) { return e.hub.watch(id) }

// pollWait is how often a waiter reads the row though nothing was announced:
// the backstop for changes that another director made.
const pollWait = 5 * time.Second

// Wait returns the task when done says so, or as it is when ctx ends or the
// wait is over.
func (e *Engine) Wait(ctx context.Context, id string, wait time.Duration, done func(signalbox.Task) bool) (signalbox.Task, error) {
	signs, stop := e.hub.watch(id)
	defer stop()
	over := time.NewTimer(wait)
	defer over.Stop()
	backstop := time.Tick(pollWait)
	for {
		// A wait that is cut short answers with what there is: also when it is
		// cut in the moment in which it looks.
		t, err := e.store.Task(context.WithoutCancel(ctx), id)
		if err != nil || done(t) {
			return t, err
		}
		select {
		case <-signs:
		case <-backstop:
		case <-over.C:
			return t, nil
		case <-ctx.Done():
			return t, nil
		}
	}
}

// Ended is the usual done of Wait.
func Ended(t signalbox.Task) bool { return t.State.Terminal() }
