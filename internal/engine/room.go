package engine

import (
	"cmp"
	"context"
	"fmt"
	"strings"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/internal/store"
)

// checkRoute refuses a task for an unknown agent, for an agent other than the holder of its
// session, or for an agent that the principal may not use.
func (e *Engine) checkRoute(ctx context.Context, n NewTask) error {
	if n.Mode == signalbox.ModeTool {
		return nil // access to tools is checked by the gateway
	}
	if n.Agent == "" {
		return e.checkLimits(ctx, n)
	}
	if !n.By.MayUse(n.Agent) {
		return n.By.NoAgent(n.Agent)
	}
	live, err := e.knownAgent(ctx, n.Agent)
	if err != nil {
		return err
	}
	if err := checkBrought(&n, &live); err != nil {
		return err
	}
	if n.SessionID == "" {
		return nil
	}
	s, err := e.store.Session(ctx, n.SessionID)
	switch {
	case signalbox.CodeOf(err) == signalbox.CodeNotFound:
		return nil
	case err != nil:
		return err
	case s.Agent != n.Agent && !n.By.MayUse(s.Agent): // nor may it learn of the holder
		return signalbox.Invalid("session_id", "agent %s has no session %s: leave session_id out, or name one of its own", n.Agent, n.SessionID)
	case s.Agent != n.Agent:
		return signalbox.Invalid("agent", "session %s is held by agent %s: leave out agent, or name %s", n.SessionID, s.Agent, s.Agent)
	case n.Mode == signalbox.ModeChat:
		return store.CheckChatSession(&s) // the store checks this again; here it takes precedence over "no room"
	}
	return nil
}

// checkBrought refuses what the agent would refuse from this caller, if the agent's rules are
// known. The agent checks again itself.
func checkBrought(n *NewTask, live *LiveAgent) error {
	if _, pulls := signalbox.PullInstance(live.URL); pulls || !live.Up || !live.Fencing {
		return nil
	}
	return cmp.Or(n.By.MayBringEnv(n.Agent, live.TaskEnv, n.Env), n.By.MayBringChecks(n.Agent, live.TaskChecks, n.Checking.Checks))
}

// checkLimits refuses an unrouted task of a principal that is limited to some agents: it
// must name one of them, or a session that one of them holds.
func (e *Engine) checkLimits(ctx context.Context, n NewTask) error {
	if len(n.By.Agents) == 0 {
		return nil
	}
	if n.SessionID != "" && n.Session == signalbox.SessionRequire {
		s, err := e.store.Session(ctx, n.SessionID)
		if err == nil && n.By.MayUse(s.Agent) || err != nil && signalbox.CodeOf(err) != signalbox.CodeNotFound {
			return err
		}
	}
	return &signalbox.Error{Code: signalbox.CodeForbidden, Field: "agent",
		Message: fmt.Sprintf("this token is limited to %s: name one of them in agent", strings.Join(n.By.Agents, ", "))}
}

// setRoom sets the submission's condition for starting at once (Room), and the session of a
// chat (Chat).
func (e *Engine) setRoom(n *NewTask, sub *store.Submission) error {
	if n.Mode == signalbox.ModeTool || n.Mode == signalbox.ModeLand || n.Mode == signalbox.ModeQueue && n.Overflow != signalbox.OverflowReject {
		return nil
	}
	sub.Room = &store.Room{
		Queues: []string{sub.Task.Queue}, Fleet: e.opts.Fleet,
		Must: n.Overflow == signalbox.OverflowReject,
	}
	offer := func(agent string, slots int) {
		sub.Room.Agents = append(sub.Room.Agents, store.RoomAgent{Name: agent, Slots: slots})
	}
	if n.Mode == signalbox.ModeQueue { // any agent that serves the queue now
		for _, a := range e.LiveAgents() {
			if a.Serves(sub.Task.Queue) {
				offer(a.Name, offerable(a))
			}
		}
		return nil
	}
	a, known := e.LiveAgent(n.Agent)
	if (!known || !a.Up) && n.Overflow != signalbox.OverflowPersist {
		return signalbox.Errorf(signalbox.CodeAgentDown, "agent %s is not connected (%s): start it again, or let the task wait for it with overflow persist",
			n.Agent, cmp.Or(a.Message, "not heard from"))
	}
	if n.Mode == signalbox.ModeBypass {
		slots := e.bypassSlots(a.IsolatedSlots)
		if slots == 0 {
			return signalbox.Errorf(signalbox.CodeUnsupported, "agent %s offers no isolated executions: use its chat, or an agent of our own daemon", n.Agent)
		}
		offer(n.Agent, slots)
		sub.Room.Isolated, sub.Room.Fleet = true, e.opts.BypassFleet
		return nil
	}
	offer(n.Agent, offerable(a))
	sub.Chat = &store.ChatSession{Agent: n.Agent, Continue: !n.NewSession && n.SessionID == ""}
	var err error
	if a.Sessions && n.SessionID == "" {
		sub.Chat.New, err = signalbox.NewSessionID(e.opts.Random)
	}
	return err
}

// offerable returns the number of slots of an agent that can be offered work, busy ones
// included.
func offerable(a LiveAgent) int {
	if !a.Up || a.Held {
		return 0
	}
	return a.Slots
}

// refusal turns a store's error into the message for the caller.
func (e *Engine) refusal(err error, n *NewTask, sub *store.Submission) error {
	limit := sub.Task.Limit
	switch signalbox.CodeOf(err) {
	case signalbox.CodeQueueFull:
		line := []any{"queue", "submit_rejected", "reason", "queue_full", "depth", sub.Cap}
		if limit != signalbox.LimitWork {
			line = append(line, "limit", limit)
		}
		e.log.Warn("", line...)
		switch limit {
		case signalbox.LimitWork:
			return signalbox.Errorf(signalbox.CodeQueueFull, "Queue is at capacity (%d tasks)", sub.Cap)
		case signalbox.LimitCommands:
			return signalbox.Errorf(signalbox.CodeQueueFull, "The queue commands is at capacity (%d tasks wait for a command slot): try again later, or raise commands.max_waiting", sub.Cap)
		}
		return signalbox.Errorf(signalbox.CodeQueueFull, "Agent '%s' is busy with %d queued requests. Please try again later.", n.Agent, sub.Cap)
	case signalbox.CodeAgentBusy:
		e.log.Warn("", "queue", "submit_rejected", "reason", "agent_busy", "in", sub.Task.Queue)
		switch {
		case n.Mode == signalbox.ModeBypass:
			return signalbox.Errorf(signalbox.CodeAgentBusy, "an isolated execution at agent %s cannot start at once: %s", n.Agent, err)
		case n.Agent == "":
			return signalbox.Errorf(signalbox.CodeAgentBusy, "the task cannot start at once in %s, and may not wait: %s", sub.Task.Queue, err)
		}
		return err // it already names the obstacle
	}
	return err
}
