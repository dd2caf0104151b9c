package engine

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/internal/callgraph"
)

// findCycle reports whether a call of the execution caller would wait for itself, and the
// cycle. A call that would not is known to later ones before it is stored.
func (e *Engine) findCycle(ctx context.Context, caller string, c callgraph.Call) ([]callgraph.Run, error) {
	live := e.LiveAgents()
	now := callgraph.Agents{Slots: make(map[string]int, len(live)), Serving: func(queue string) (names []string) {
		for i := range live {
			if a := &live[i]; a.Up && a.Serves(queue) {
				names = append(names, a.Name)
			}
		}
		return names
	}}
	for i := range live {
		now.Slots[live[i].Name] = live[i].Slots
	}
	if e.following.Load() {
		return callgraph.FindStoredCycle(ctx, e.store, now, caller, c)
	}
	return e.calls.FindCycle(ctx, e.store, now, caller, c)
}

// callOrigin is the execution from which an agent makes a request.
type callOrigin struct {
	parent string // id of the execution; "": it is made outside of any
	depth  int
}

// resolveOrigin finds the execution that makes a call, and refuses a call that is nested
// too deeply or would wait for itself.
//
// Errors: CodeForbidden if the named execution is not one of the agent's; CodeValidation if
// it runs several and names none; CodeCallDepth; CodeCallCycle with the cycle.
func (e *Engine) resolveOrigin(ctx context.Context, n *NewTask) (callOrigin, error) {
	tool := n.Mode == signalbox.ModeTool
	if n.By.Kind != signalbox.PrincipalAgent || !tool && n.Scheduled || tool && n.CallerID == "" {
		return callOrigin{}, nil
	}
	if tool { // it only records the execution: a tool waits for no agent, so it cannot close a cycle
		parent, err := e.store.Task(ctx, n.CallerID)
		if signalbox.CodeOf(err) == signalbox.CodeNotFound {
			return callOrigin{}, nil
		}
		return callOrigin{parent: parent.ID, depth: parent.Depth}, err
	}
	parent, err := e.executionOf(ctx, n.By.ID, n.CallerID)
	if err != nil || parent.ID == "" {
		return callOrigin{}, err
	}
	c := callOrigin{parent: parent.ID, depth: parent.Depth + 1}
	if c.depth > signalbox.MaxCallDepth {
		return c, signalbox.Errorf(signalbox.CodeCallDepth,
			"%d agents have called one another to get here, the most there may be: do the rest in %s itself", signalbox.MaxCallDepth, n.By.ID)
	}
	if !n.Waits || n.Overflow == signalbox.OverflowReject {
		return c, nil // it does not wait for a slot
	}
	queue, session, err := e.waitsIn(ctx, n)
	if err != nil {
		return c, err
	}
	path, err := e.findCycle(ctx, parent.ID, callgraph.Call{ID: n.ID, Queue: queue, Session: session})
	if err == nil && path != nil {
		err = signalbox.Errorf(signalbox.CodeCallCycle, "the call would wait for itself: %s, which holds what it would wait for; submit the task without waiting for it, or answer from %s",
			describeCycle(&parent, path), n.By.ID)
	}
	return c, err
}

// recheckCycle checks a stored call again where several directors share the store: another
// one may have stored a call at the same time that closes a cycle with this one. Then the
// call is cancelled; possibly both are, but neither waits for ever.
func (e *Engine) recheckCycle(ctx context.Context, n *NewTask, t *signalbox.Task) error {
	if !t.Waits || t.State != signalbox.Pending || !e.following.Load() {
		return nil
	}
	_, refused := e.resolveOrigin(ctx, n)
	if signalbox.CodeOf(refused) != signalbox.CodeCallCycle {
		return nil // other errors do not matter: the first check passed
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

// ExecutionOf returns the id of the execution in which an agent makes a call: the one it
// names, else the only one that it runs, else "". several says that it runs more than one
// and named none.
//
// Errors: CodeForbidden if it does not run the one it names.
func (e *Engine) ExecutionOf(ctx context.Context, agent, named string) (id string, several bool, err error) {
	t, err := e.executionOf(ctx, agent, named)
	if named == "" && signalbox.CodeOf(err) == signalbox.CodeValidation {
		return "", true, nil
	}
	return t.ID, false, err
}

// executionOf is ExecutionOf with the row, zero for none; CodeValidation says several.
func (e *Engine) executionOf(ctx context.Context, agent, named string) (signalbox.Task, error) {
	id := named
	if named == "" {
		slots, err := e.store.Slots(ctx)
		slots = slices.DeleteFunc(slots, func(s signalbox.Slot) bool { return s.Agent != agent || s.Withheld })
		switch {
		case err != nil || len(slots) == 0:
			return signalbox.Task{}, err
		case len(slots) > 1:
			return signalbox.Task{}, signalbox.Invalid("X-Signalbox-Execution", "agent %s runs %d executions: say which one calls, with the header X-Signalbox-Execution (SIGNALBOX_QUEUE_ID in its environment)", agent, len(slots))
		}
		id = slots[0].TaskID
	}
	t, err := e.store.Task(ctx, id)
	switch {
	case err == nil && t.State.InFlight() && t.Agent == agent:
		return t, nil
	case named != "" && (err == nil || signalbox.CodeOf(err) == signalbox.CodeNotFound):
		return signalbox.Task{}, signalbox.Errorf(signalbox.CodeForbidden, "agent %s does not run an execution %s: leave X-Signalbox-Execution out, or name one that it runs", agent, signalbox.Clip(named))
	}
	return signalbox.Task{}, err // nil: it ended since the slots were read
}

// waitsIn returns the queue in which a task will wait, and the session whose turn it will
// wait for; "" for none or a new one.
func (e *Engine) waitsIn(ctx context.Context, n *NewTask) (queue, session string, err error) {
	if n.Mode == signalbox.ModeChat {
		session = n.SessionID
		if session == "" && !n.NewSession {
			session, err = e.CurrentSession(ctx, n.Agent)
		}
		return n.queue(), session, err
	}
	if n.SessionID != "" && n.Agent == "" { // it goes to the holder of its session
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

// describeCycle names the agents of a cycle that starts and ends at caller, at most 20.
func describeCycle(caller *signalbox.Task, path []callgraph.Run) string {
	names := []string{fmt.Sprintf("%s (%s)", caller.Agent, caller.ID)}
	for _, r := range path {
		if r.ID == caller.ID {
			break
		}
		if names = append(names, fmt.Sprintf("%s (%s)", r.Agent, r.ID)); len(names) == 20 {
			names = append(names, "…")
			break
		}
	}
	return strings.Join(append(names, caller.Agent), " → ")
}

// InCall reports whether an execution waits for something it asked of this director: a tool
// call, or the end of a task.
func (e *Engine) InCall(ctx context.Context, id string) (bool, error) {
	if e.inCall != nil && e.inCall(id) {
		return true, nil
	}
	children, err := e.store.Children(ctx, id, batchSize)
	return slices.ContainsFunc(children, func(c signalbox.Task) bool { return c.Waits && !c.State.Terminal() }), err
}
