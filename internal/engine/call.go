package engine

import (
	"context"
	"fmt"
	"slices"
	"strings"
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

// call is what is known of a request that an agent makes from within one of
// its executions.
type call struct {
	parent string // id of the execution; "": it is made from outside of any
	depth  int
}

// callOf finds the execution of an agent that makes a call, and refuses a call
// that is too deep or that would wait for itself.
//
// Errors: CodeForbidden where the execution that is named is not one of the
// agent's; CodeValidation where several could be meant and none is named;
// CodeCallDepth; CodeCallCycle with the cycle.
func (e *Engine) callOf(ctx context.Context, n *NewTask) (call, error) {
	if n.Mode == signalbox.ModeTool {
		return e.toolCallOf(ctx, n)
	}
	if n.By.Kind != signalbox.PrincipalAgent || n.Scheduled {
		return call{}, nil
	}
	parent, err := e.executionOf(ctx, n.By.ID, n.CallerID)
	if err != nil || parent == nil {
		return call{}, err
	}
	c := call{parent: parent.ID, depth: parent.Depth + 1}
	if c.depth > signalbox.MaxCallDepth {
		return c, signalbox.Errorf(signalbox.CodeCallDepth,
			"%d agents have called one another to get here, the most there may be: do the rest in %s itself", signalbox.MaxCallDepth, n.By.ID)
	}
	if !n.Waits || n.Overflow == signalbox.OverflowReject {
		return c, nil // it does not wait for a slot
	}
	queue, session, err := e.lineOf(ctx, n)
	if err != nil {
		return c, err
	}
	path, err := e.circle(ctx, parent.ID, callgraph.Call{ID: n.ID, Queue: queue, Session: session})
	if err == nil && path != nil {
		err = signalbox.Errorf(signalbox.CodeCallCycle, "the call would wait for itself: %s, which holds what it would wait for; submit the task without waiting for it, or answer from %s",
			inWords(parent, path), n.By.ID)
	}
	return c, err
}

// closedElsewhere looks once more whether a call that is stored would wait for
// itself, where other directors are over the store: one of them may have stored
// another call at the same time, with which this one closes a circle. Then it is
// taken back; so may be both, and neither waits for ever.
func (e *Engine) closedElsewhere(ctx context.Context, n *NewTask, t *signalbox.Task) error {
	if !t.Waits || t.State != signalbox.Pending || !e.following.Load() {
		return nil
	}
	_, refused := e.callOf(ctx, n)
	if signalbox.CodeOf(refused) != signalbox.CodeCallCycle {
		return nil // it is stored, and has passed once
	}
	_, err := e.apply(context.WithoutCancel(ctx), t.ID, t, signalbox.Event{Kind: signalbox.EventCancel, Waiting: true, By: "the director: the call would wait for itself"})
	switch signalbox.CodeOf(err) {
	case signalbox.CodeConflict: // it has its slot
		return nil
	case "", signalbox.CodeAlreadyEnded, signalbox.CodeNotFound:
		return refused
	}
	return err
}

// ExecutionOf returns the id of the execution in which an agent makes a call:
// the one it names, else the only one that it runs, else "". several says that
// it runs more than one and named none. Errors: CodeForbidden where it does not
// run the one it names.
func (e *Engine) ExecutionOf(ctx context.Context, agent, named string) (id string, several bool, err error) {
	t, err := e.executionOf(ctx, agent, named)
	switch {
	case named == "" && signalbox.CodeOf(err) == signalbox.CodeValidation:
		return "", true, nil
	case err != nil || t == nil:
		return "", false, err
	}
	return t.ID, false, nil
}

// executionOf returns the execution of an agent that has the id, or the only one
// that it runs; nil if it runs none. Errors: CodeForbidden where it does not run
// the one it names, CodeValidation where it runs several and names none.
func (e *Engine) executionOf(ctx context.Context, agent, named string) (*signalbox.Task, error) {
	if named != "" {
		t, err := e.store.Task(ctx, named)
		switch {
		case err == nil && t.State.InFlight() && t.Agent == agent:
			return &t, nil
		case err == nil || signalbox.CodeOf(err) == signalbox.CodeNotFound:
			return nil, signalbox.Errorf(signalbox.CodeForbidden, "agent %s does not run an execution %s: leave X-Signalbox-Execution out, or name one that it runs", agent, clip(named))
		}
		return nil, err
	}
	slots, err := e.store.Slots(ctx)
	if err != nil {
		return nil, err
	}
	slots = slices.DeleteFunc(slots, func(s signalbox.Slot) bool { return s.Agent != agent || s.Withheld })
	switch len(slots) {
	case 0:
		return nil, nil
	case 1:
		t, err := e.store.Task(ctx, slots[0].TaskID)
		if err != nil || !t.State.InFlight() || t.Agent != agent { // it ended since the slots were read
			return nil, err
		}
		return &t, nil
	}
	return nil, signalbox.Invalid("X-Signalbox-Execution", "agent %s runs %d executions: say which one calls, with the header X-Signalbox-Execution (SIGNALBOX_QUEUE_ID in its environment)", agent, len(slots))
}

// lineOf says in which queue a task will wait, and for the turn of which
// conversation; "" for none, or a new one.
func (e *Engine) lineOf(ctx context.Context, n *NewTask) (queue, session string, err error) {
	if n.Mode == signalbox.ModeChat {
		session = n.SessionID
		if session == "" && !n.NewSession {
			session, err = e.CurrentSession(ctx, n.Agent)
		}
		return n.queue(), session, err
	}
	if n.SessionID != "" && n.Agent == "" { // it follows the agent that holds its session
		held, err := e.store.Session(ctx, n.SessionID)
		switch {
		case err == nil:
			return signalbox.AgentQueue(held.Agent), n.SessionID, nil
		case signalbox.CodeOf(err) != signalbox.CodeNotFound:
			return "", "", err
		}
	}
	return n.queue(), n.SessionID, nil
}

// inWords names the agents of a circle that begins and ends at caller.
func inWords(caller *signalbox.Task, path []callgraph.Run) string {
	names := []string{fmt.Sprintf("%s (%s)", caller.Agent, caller.ID)}
	for _, r := range path {
		if r.ID == caller.ID {
			break
		}
		if names = append(names, fmt.Sprintf("%s (%s)", r.Agent, r.ID)); len(names) == maxNamed {
			names = append(names, "…")
			break
		}
	}
	return strings.Join(append(names, caller.Agent), " → ")
}

// maxNamed is how many agents of a circle its refusal names.
const maxNamed = 20

// InCall reports whether an execution waits for what it asked this director for: a
// tool call, or a task whose end it waits for.
func (e *Engine) InCall(ctx context.Context, id string) (bool, error) {
	if e.calls != nil && e.calls(id) {
		return true, nil
	}
	children, err := e.store.Children(ctx, id, batch)
	return slices.ContainsFunc(children, func(c signalbox.Task) bool { return c.Waits && !c.State.Terminal() }), err
}
