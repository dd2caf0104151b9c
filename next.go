package signalbox

import (
	"cmp"
	"fmt"
	"time"
)

// Next applies the table of legal transitions: it returns the change that event
// ev makes to task t, or an error that says why it is refused.
//
// Refusals are *Error with CodeAlreadyEnded (t is terminal), CodeStaleFence
// (ev comes from an execution that no longer holds t's slot) or CodeConflict
// (the event is not possible in t's state). Next itself stores nothing.
func Next(t Task, ev Event) (Change, error) {
	if t.State.Terminal() {
		return Change{}, Errorf(CodeAlreadyEnded, "task %s has already ended: %s (%s)", t.ID, t.State, t.Reason)
	}
	step, ok := table[ev.Kind]
	if !ok {
		return Change{}, Errorf(CodeConflict, "task %s: %q is not an event of a task", t.ID, ev.Kind)
	}
	if step.fenced && ev.Fence != t.Fence {
		return Change{}, Errorf(CodeStaleFence, "task %s: fence %d is stale, the task is at %d", t.ID, ev.Fence, t.Fence)
	}
	move := step.from[t.State]
	if move == nil {
		return Change{}, Errorf(CodeConflict, "task %s is %s: %s is not possible there", t.ID, t.State, ev.Kind)
	}
	c := Change{Task: t}
	if err := move(&c, ev); err != nil {
		return Change{}, err
	}
	if c.Task.State != t.State {
		c.Account = ev.Account
	}
	message := cmp.Or(c.Entry.Message, entryMessage(&c.Task))
	c.Entry = entry(&c.Task, ev)
	c.Entry.Message = message
	return c, nil
}

func entry(t *Task, ev Event) Entry {
	return Entry{
		At: ev.Now, Kind: ev.Kind, QueueID: t.ID, State: t.State, Reason: t.Reason,
		Queue: t.Queue, Agent: t.Agent, Fence: t.Fence, Attempts: t.Attempts, Source: t.Source, By: ev.By, Owner: t.Owner,
	}
}

func entryMessage(t *Task) string {
	if t.State.Waiting() && t.LastError != "" {
		return t.LastError
	}
	return t.Message
}

// step holds the rules for one event: in which states it is legal and what it does there.
type step struct {
	fenced bool // the event must carry the task's fence
	from   map[State]func(*Change, Event) error
}

type moves = map[State]func(*Change, Event) error

// table defines what each event does in each state.
var table = map[EventKind]step{
	EventClaim:  {from: moves{Pending: claim}},
	EventAccept: {fenced: true, from: moves{Dispatching: accept, Working: same, Cancelling: same}},
	EventBusy:   {fenced: true, from: moves{Dispatching: busy}},
	EventRefuse: {fenced: true, from: moves{Dispatching: refuse}},
	EventUnsent: {fenced: true, from: moves{Dispatching: unsent}},
	EventReject: {fenced: true, from: moves{Dispatching: reject}},
	EventFinish: {fenced: true, from: moves{Dispatching: finish, Working: finish, Cancelling: finish}},
	EventLost:   {fenced: true, from: moves{Dispatching: lostUnstarted, Working: lost, Cancelling: lostCancelling}},
	EventRelease: {fenced: true, from: moves{
		Dispatching: release, Working: release, Cancelling: releaseCancelling,
	}},
	EventCancel: {from: moves{
		Pending: cancelPending, Parked: cancelPending, Dispatching: begun(cancelDispatching), Working: begun(cancelWorking), Cancelling: begun(same),
	}},
	EventWaitTimeout:   {from: moves{Pending: waitTimeout}},
	EventMove:          {from: moves{Pending: moveQueue, Parked: moveQueue}},
	EventEdit:          {from: moves{Pending: edit}},
	EventUndeliverable: {from: moves{Pending: undeliverable, Parked: undeliverable}},
	EventStop:          {fenced: true, from: moves{Working: stop, Cancelling: same}},
	EventPark:          {fenced: true, from: moves{Dispatching: park, Working: park, Cancelling: park, Parked: same}},
	EventUnpark:        {from: moves{Parked: unpark, Pending: unpark}},
}

// same accepts an event that repeats what is already known. A repeated answer
// is no error and changes no state.
func same(*Change, Event) error { return nil }

func claim(c *Change, ev Event) error {
	t := &c.Task
	if ev.Fence <= t.Fence {
		return Errorf(CodeStaleFence, "task %s: a claim needs a fence above %d, not %d", t.ID, t.Fence, ev.Fence)
	}
	t.State = Dispatching
	t.Agent, t.AgentURL, t.Slot, t.Fence = ev.Agent, ev.AgentURL, ev.Slot, ev.Fence
	t.TaskID, t.Message = "", ""
	t.DispatchedAt, t.StartedAt = latest(ev.Now, t.CreatedAt), time.Time{}
	t.Claims++
	c.Slot = SlotTake
	return nil
}

func accept(c *Change, ev Event) error {
	t := &c.Task
	t.State = Working
	if t.CancelRequested {
		t.State = Cancelling
	}
	t.TaskID, t.StartedAt = ev.TaskID, latest(ev.Now, t.DispatchedAt)
	bind(c, ev.SessionID)
	return nil
}

// bind records the conversation in which the agent runs the task.
func bind(c *Change, sessionID string) {
	if sessionID == "" {
		return
	}
	c.Task.SessionID = cmp.Or(c.Task.SessionID, sessionID)
	c.Session = c.Task.SessionID == sessionID
}

func busy(c *Change, ev Event) error {
	if c.Task.CancelRequested {
		return endCancelled(c, ev)
	}
	c.Task.LastError = cmp.Or(ev.Message, "agent busy")
	c.Task.NotBefore = time.Time{}
	c.Order = OrderBack
	return toPending(c, ev)
}

func refuse(c *Change, ev Event) error {
	t := &c.Task
	t.Attempts++
	t.LastError = cmp.Or(ev.Message, "the agent did not take it")
	return retryOrFail(c, ev, ReasonDispatchFailed)
}

func unsent(c *Change, ev Event) error {
	t := &c.Task
	if !ev.NotTried {
		t.NoAnswers++
	}
	t.LastError = cmp.Or(ev.Message, "the director stopped before the task was sent")
	return retryOrFail(c, ev, ReasonDispatchFailed)
}

// retryOrFail returns a task that did not start to its place in the queue, or
// fails it if its attempts or its claims without an answer are used up.
func retryOrFail(c *Change, ev Event, reason Reason) error {
	t := &c.Task
	switch {
	case t.CancelRequested:
		return endCancelled(c, ev)
	case t.MaxAttempts > 0 && t.Attempts >= t.MaxAttempts:
		return end(c, ev, reason, fmt.Sprintf("gave up after %d of %d attempts: %s", t.Attempts, t.MaxAttempts, t.LastError))
	case t.OverBudget(t.Spent) != "":
		return end(c, ev, ReasonBudget, t.OverBudget(t.Spent)+"; "+t.LastError)
	case t.NoAnswers >= MaxNoAnswers:
		return end(c, ev, reason, fmt.Sprintf("gave up after %d claims that no agent took up: %s", t.NoAnswers, t.LastError))
	}
	t.NotBefore = time.Time{}
	if ev.Delay > 0 {
		t.NotBefore = ev.Now.Add(ev.Delay)
	}
	return toPending(c, ev)
}

// toPending gives the slot back. The task keeps the agent, the fence and the
// rest of the last claim: they say where it was tried, and the fence must grow.
func toPending(c *Change, ev Event) error {
	t := &c.Task
	t.addRequeue(Requeue{
		Kind: ev.Kind, Agent: t.Agent, ClaimedAt: t.DispatchedAt, At: latest(ev.Now, t.DispatchedAt),
		Message: clip(t.LastError, MaxRequeueMessage),
	})
	t.State, t.IgnoreGates = Pending, false
	t.TaskID, t.StartedAt = "", time.Time{}
	c.Slot = SlotFree
	return nil
}
