package engine

import (
	"context"
	"sync"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/internal/engine/callgraph"
)

// circle reports whether a call of the execution caller would wait for itself.
// If it would not, and this director alone is over the store, the call stands in
// the book from now on, so that no other can close a circle with it before it is
// stored.
func (e *Engine) circle(ctx context.Context, caller string, c callgraph.Call) ([]callgraph.Run, error) {
	fleet := newCallFleet(e.live.Agents())
	if e.following.Load() {
		flying, err := e.store.InFlight(ctx)
		if err != nil {
			return nil, err
		}
		g := storeGraph{bookGraph: bookGraph{callFleet: fleet, rows: newCallRows()}, ctx: ctx, store: e.store}
		for i := range flying {
			g.rows.put(callRowOf(&flying[i]))
		}
		return callgraph.Circle(g, caller, c)
	}
	if err := e.book.load(ctx, e); err != nil {
		return nil, err
	}
	e.book.mu.Lock()
	defer e.book.mu.Unlock()
	path, err := callgraph.Circle(bookGraph{fleet, e.book.rows}, caller, c)
	if err == nil && path == nil && c.ID != "" {
		e.book.rows.put(callRow{Call: c, parent: caller})
	}
	return path, err
}

// callBook knows who waits for whom as long as this director is the only one over
// its store: every durable change is told to it before anyone hears of it.
type callBook struct {
	loading chan struct{} // capacity 1: held by who loads
	mu      sync.Mutex
	loaded  bool
	rows    *callRows
	gone    map[string]int64 // newest revision of rows that left, as changes may be told out of order
	left    []string         // their ids, oldest first
}

// maxGone is how many rows that left are remembered: changes are told out of
// order only while the goroutines that made them are between two statements.
const maxGone = 4096

func (b *callBook) init() {
	b.loading = make(chan struct{}, 1)
	b.rows = newCallRows()
	b.gone = map[string]int64{}
}

// load reads what is in flight from the store, once.
func (b *callBook) load(ctx context.Context, e *Engine) error {
	select {
	case b.loading <- struct{}{}:
	case <-ctx.Done():
		return ctx.Err()
	}
	defer func() { <-b.loading }()
	if b.loaded {
		return nil
	}
	flying, err := e.store.InFlight(ctx)
	if err != nil {
		return err
	}
	rows := flying
	for _, t := range flying {
		children, err := e.store.Children(ctx, t.ID, batch)
		if err != nil {
			return err
		}
		rows = append(rows, children...)
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	for i := range rows {
		b.see(&rows[i])
	}
	b.loaded = true
	return nil
}

// changed tells the book of a durable change.
func (b *callBook) changed(t *signalbox.Task) {
	b.mu.Lock()
	b.see(t)
	b.mu.Unlock()
}

func (b *callBook) see(t *signalbox.Task) {
	was, known := b.rows.byID[t.ID]
	switch {
	case t.Mode == signalbox.ModeTool: // a tool waits for no agent
	case known && was.rev >= t.Rev || b.gone[t.ID] >= t.Rev: // it has gone on
	case t.State.InFlight() || t.State == signalbox.Pending && t.Waits:
		b.rows.put(callRowOf(t))
	case t.Rev > 1:
		b.rows.remove(t.ID)
		b.forget(t)
	}
}

// forget notes that a row has left, with that revision.
func (b *callBook) forget(t *signalbox.Task) {
	if b.gone[t.ID] == 0 {
		b.left = append(b.left, t.ID)
	}
	b.gone[t.ID] = t.Rev
	if len(b.left) > maxGone {
		delete(b.gone, b.left[0])
		b.left = b.left[1:]
	}
}

// callNotMade takes back a call that was not stored.
func (b *callBook) callNotMade(id string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if r, known := b.rows.byID[id]; known && r.rev == 0 {
		b.rows.remove(id)
	}
}

// bound tells the book that an agent holds a conversation now: the store moves
// to its queue what waits for a turn of it, and tells of the one change only.
func (b *callBook) bound(session, agent string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for id := range b.rows.bySession[session] {
		r := b.rows.byID[id]
		if _, own := signalbox.QueueAgent(r.Queue); r.Agent == "" && !own {
			r.Queue = signalbox.AgentQueue(agent)
			b.rows.byID[id] = r
		}
	}
}
