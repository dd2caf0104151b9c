package engine

import (
	"context"
	"sync"
	"time"

	"github.com/signalbox-ai/signalbox"
)

// Applied is a durable change.
type Applied struct {
	From signalbox.State     // "" for a submit
	Task signalbox.Task      // after it
	Kind signalbox.EventKind // "" for a task made ready by Wake, which is not an event
	By   string
	Used signalbox.Usage // by the run that the change ended; Runs is 0 if it reported nothing
	// Depth is how many tasks wait under the task's limit, if Kind is EventSubmit.
	Depth int
	// Account that changed, if Kind is EventAccount.
	Account string
	// Request.Trace, if Kind is EventSubmit or EventClaim.
	Trace string
	// Foreign: another director made the change, and counts it in its metrics. Partial:
	// Task has only what the journal says: ID, State, Reason, Message, Queue, Agent, Fence,
	// Attempts, Source, Owner.
	Foreign, Partial bool
}

// NextTurn reports whether another turn of the task's session may be ready now, in any
// queue: this turn is over, or it was queued behind one that became due unnoticed.
func (a *Applied) NextTurn() bool {
	t := &a.Task
	return t.SessionID != "" && !t.State.InFlight() && (a.Kind != signalbox.EventSubmit || !t.Ready)
}

// hub distributes durable changes to observers and waiters.
type hub struct {
	mu        sync.Mutex
	observers []func(*Applied)
	ofAgents  []func(name string)
	waiters   map[string]map[chan struct{}]struct{} // by task id; "" is the journal
}

// Observe calls f after every durable change, on the goroutine that made it. f must be
// quick, must not call the engine, and must neither keep nor modify its argument. Register
// observers before the engine is used.
func (e *Engine) Observe(f func(*Applied)) {
	e.hub.mu.Lock()
	defer e.hub.mu.Unlock()
	e.hub.observers = append(e.hub.observers, f)
}

// ObserveAgents calls f when an agent's LiveAgent may have changed, apart from LastHeard.
// The caller holds locks of the Live source, so f must be quick and must not call the
// engine. Register observers before the engine is used.
func (e *Engine) ObserveAgents(f func(name string)) {
	e.hub.mu.Lock()
	defer e.hub.mu.Unlock()
	e.hub.ofAgents = append(e.hub.ofAgents, f)
}

// AgentChanged notifies observers that an agent's LiveAgent may have changed.
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
	h.signal(a.Task.ID)
	h.signal("")
	observers := h.observers
	h.mu.Unlock()
	for _, f := range observers {
		f(a)
	}
}

// notifyAll signals all waiters.
func (h *hub) notifyAll() {
	h.mu.Lock()
	defer h.mu.Unlock()
	for id := range h.waiters {
		h.signal(id)
	}
}

func (h *hub) journalGrew() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.signal("")
}

// signal sends to the channels of a task, which have capacity 1, unless they are full.
func (h *hub) signal(id string) {
	for c := range h.waiters[id] {
		select {
		case c <- struct{}{}:
		default:
		}
	}
}

// watch returns a channel that is signalled after each change of a task.
func (h *hub) watch(id string) (changes <-chan struct{}, stop func()) {
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

// WatchJournal returns a channel that is signalled when the journal grows. One signal may
// stand for many entries.
func (e *Engine) WatchJournal() (changes <-chan struct{}, stop func()) { return e.hub.watch("") }

// WatchTask returns a channel that is signalled after each change of a task.
func (e *Engine) WatchTask(id string) (changes <-chan struct{}, stop func()) { return e.hub.watch(id) }

// pollWait is how often a waiter reads the row without a signal, as a backstop for changes
// by other directors.
const pollWait = 5 * time.Second

// Wait returns the task once done reports true, or its current row when ctx ends or wait is
// over.
func (e *Engine) Wait(ctx context.Context, id string, wait time.Duration, done func(signalbox.Task) bool) (signalbox.Task, error) {
	changes, stop := e.hub.watch(id)
	defer stop()
	over := time.NewTimer(wait)
	defer over.Stop()
	backstop := time.Tick(pollWait)
	for {
		// Even if ctx ends during this read, return the current row.
		t, err := e.store.Task(context.WithoutCancel(ctx), id)
		if err != nil || done(t) {
			return t, err
		}
		select {
		case <-changes:
		case <-backstop:
		case <-over.C:
			return t, nil
		case <-ctx.Done():
			return t, nil
		}
	}
}

// Ended is the usual condition for Wait.
func Ended(t signalbox.Task) bool { return t.State.Terminal() }
