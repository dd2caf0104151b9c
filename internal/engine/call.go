package engine

import (
	"context"
	"fmt"
	"strings"

	"github.com/signalbox-ai/signalbox"
)

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
	g, err := e.waits(ctx)
	if err != nil {
		return call{}, err
	}
	parent, err := g.executionOf(n.By.ID, n.CallerID)
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
	path, err := g.blockedIn(parent.ID, queue, session)
	if err == nil && path != nil {
		err = signalbox.Errorf(signalbox.CodeCallCycle, "the call would wait for itself: %s, which holds what it would wait for; submit the task without waiting for it, or answer from %s",
			circle(parent, path), n.By.ID)
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
	g, err := e.waits(ctx)
	if err != nil {
		return "", false, err
	}
	if named == "" && len(g.all[agent]) > 1 {
		return "", true, nil
	}
	t, err := g.executionOf(agent, named)
	if err != nil || t == nil {
		return "", false, err
	}
	return t.ID, false, nil
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

// waits is the graph of who waits for whom, as it is now: an execution waits
// for the tasks that it called and waits for, a waiting task for the executions
// that hold the slots of the agents that serve its queue, and for the turn of
// its conversation before it.
type waits struct {
	e      *Engine
	ctx    context.Context //nolint:containedctx // of one question
	flying map[string]*signalbox.Task
	at     map[string][]*signalbox.Task // executions that hold a slot, by agent
	all    map[string][]*signalbox.Task // with the isolated ones
	met    map[string]bool              // executions on the way: to meet one again is to wait in a circle
}

func (e *Engine) waits(ctx context.Context) (*waits, error) {
	flying, err := e.store.InFlight(ctx)
	if err != nil {
		return nil, err
	}
	g := &waits{e: e, ctx: ctx, flying: map[string]*signalbox.Task{}, at: map[string][]*signalbox.Task{}, all: map[string][]*signalbox.Task{}, met: map[string]bool{}}
	for i := range flying {
		t := &flying[i]
		g.flying[t.ID] = t
		g.all[t.Agent] = append(g.all[t.Agent], t)
		if !signalbox.Isolated(t.Slot) {
			g.at[t.Agent] = append(g.at[t.Agent], t)
		}
	}
	return g, nil
}

// executionOf returns the execution of an agent that has the id, or the only
// one that it runs; nil if it runs none.
func (g *waits) executionOf(agent, id string) (*signalbox.Task, error) {
	runs := g.all[agent]
	if id != "" {
		if t := g.flying[id]; t != nil && t.Agent == agent {
			return t, nil
		}
		return nil, signalbox.Errorf(signalbox.CodeForbidden, "agent %s does not run an execution %s: leave X-Signalbox-Execution out, or name one that it runs", agent, clip(id))
	}
	switch len(runs) {
	case 0:
		return nil, nil
	case 1:
		return runs[0], nil
	}
	return nil, signalbox.Invalid("X-Signalbox-Execution", "agent %s runs %d executions: say which one calls, with the header X-Signalbox-Execution (SIGNALBOX_QUEUE_ID in its environment)", agent, len(runs))
}

// blockedIn reports whether a task that waits in queue cannot start before
// caller has ended: no agent that serves the queue can take it. An agent that
// is not known to serve it may still come.
func (g *waits) blockedIn(caller, queue, session string) (path []*signalbox.Task, err error) {
	if name, own := signalbox.QueueAgent(queue); own {
		return g.blocked(caller, name, session)
	}
	for _, a := range g.e.live.Agents() {
		if !a.Up || !a.Serves(queue) {
			continue
		}
		way, err := g.blocked(caller, a.Name, session)
		if err != nil || way == nil {
			return nil, err
		}
		path = way
	}
	return path, nil
}

// blocked reports whether a task of agent in session cannot start before
// caller has ended, for want of a free slot or because it is not its turn: then
// it returns the executions on the way from that agent to caller.
func (g *waits) blocked(caller, agent, session string) (path []*signalbox.Task, err error) {
	holders := g.at[agent]
	for _, h := range holders {
		if session == "" || h.SessionID != session {
			continue
		}
		if way, err := g.stuck(caller, h); err != nil || way != nil {
			return way, err
		}
	}
	live, known := g.e.live.LiveAgent(agent)
	if !known || len(holders) < live.Slots {
		return nil, nil
	}
	for _, h := range holders {
		way, err := g.stuck(caller, h)
		if err != nil || way == nil {
			return nil, err
		}
		if path == nil || way[len(way)-1].ID == caller {
			path = way
		}
	}
	return path, nil
}

// stuck reports whether an execution cannot end before caller has: it is
// caller, or one of the tasks that it waits for is stuck. path begins with it.
func (g *waits) stuck(caller string, t *signalbox.Task) (path []*signalbox.Task, err error) {
	if t.ID == caller || g.met[t.ID] {
		return []*signalbox.Task{t}, nil
	}
	g.met[t.ID] = true
	defer delete(g.met, t.ID)
	children, err := g.e.store.Children(g.ctx, t.ID, batch)
	if err != nil {
		return nil, err
	}
	for _, c := range children {
		if !c.Waits || c.State.Terminal() {
			continue
		}
		var way []*signalbox.Task
		if f := g.flying[c.ID]; f != nil {
			way, err = g.stuck(caller, f)
		} else {
			way, err = g.blockedIn(caller, c.Queue, c.SessionID)
		}
		if err != nil {
			return nil, err
		}
		if way != nil {
			return append([]*signalbox.Task{t}, way...), nil
		}
	}
	return nil, nil
}

// circle names the agents of a cycle that begins and ends at caller.
func circle(caller *signalbox.Task, path []*signalbox.Task) string {
	names := []string{fmt.Sprintf("%s (%s)", caller.Agent, caller.ID)}
	for _, t := range path {
		if t.ID == caller.ID {
			break
		}
		names = append(names, fmt.Sprintf("%s (%s)", t.Agent, t.ID))
	}
	return strings.Join(append(names, caller.Agent), " → ")
}
