package signalbox

import "time"

// EventKind names what happened. The first group are transitions of a task, which Next
// takes; the second group happen to agents, queues, accounts and so on. Both are written
// to the journal.
type EventKind string

// The events of a task.
const (
	EventSubmit        EventKind = "submit"        // it was stored; not an input of Next
	EventClaim         EventKind = "claim"         // a free slot took it
	EventAccept        EventKind = "accept"        // the agent answered 201, or reports that it runs it
	EventBusy          EventKind = "busy"          // the agent answered 409: to the back, costs no attempt
	EventRefuse        EventKind = "refuse"        // connection refused, 5xx, or never seen after a send: costs an attempt
	EventUnsent        EventKind = "unsent"        // the director died before it sent the claim, or the agent is closed: costs no attempt, but is counted
	EventReject        EventKind = "reject"        // the agent answered 4xx
	EventFinish        EventKind = "finish"        // the agent reported how it ended
	EventLost          EventKind = "lost"          // the agent is silent, no longer knows it, or was restarted
	EventRelease       EventKind = "release"       // someone took the slot away
	EventCancel        EventKind = "cancel"        // someone asked to stop it
	EventWaitTimeout   EventKind = "wait_timeout"  // its WaitUntil passed while it was pending
	EventMove          EventKind = "move"          // it goes to another queue, keeping its place
	EventEdit          EventKind = "edit"          // someone changed it while it waited; the message says what
	EventUndeliverable EventKind = "undeliverable" // no agent that may take it will come back
	EventStop          EventKind = "stop"          // a limit fired: the agent is told to stop it
	EventPark          EventKind = "park"          // its run was ended and continues when a gate opens
	EventUnpark        EventKind = "unpark"        // its gate opened, or someone lets it run anyway: it becomes the first of its queue
)

// The events of agents and queues.
const (
	EventAgentUp      EventKind = "agent_up"
	EventAgentDown    EventKind = "agent_down"
	EventAgentAdded   EventKind = "agent_added"
	EventAgentRemoved EventKind = "agent_removed"
	EventPaused       EventKind = "queue_paused"
	EventResumed      EventKind = "queue_resumed"
	EventRestored     EventKind = "restored" // an ended task was imported from another store
	EventAccount      EventKind = "account"  // an account was closed or opened, as the message says
	EventBudget       EventKind = "budget"   // another budget is used up, or no longer any; not in the journal
	EventLanding      EventKind = "landing"  // the landing of a task's work changed, as the message says
	EventSession      EventKind = "session"  // a session was archived, restored, or is gone

	EventScheduleChanged EventKind = "schedule_changed" // a schedule was added, edited, enabled, disabled or removed, as the message says
	EventScheduleFired   EventKind = "schedule_fired"   // a firing was decided; the message is its RunStatus
)

// TaskEvents lists the inputs of Next.
func TaskEvents() []EventKind {
	return []EventKind{
		EventClaim, EventAccept, EventBusy, EventRefuse, EventUnsent, EventReject, EventFinish, EventLost,
		EventRelease, EventCancel, EventWaitTimeout, EventMove, EventEdit, EventUndeliverable, EventStop,
		EventPark, EventUnpark,
	}
}

// Event is something that happened to a task.
type Event struct {
	Kind EventKind
	Now  time.Time

	// Fence is the fence of the execution that reports the event: claim (the new one), accept,
	// busy, refuse, unsent, reject, finish, lost, release, stop, park. A fence other than the
	// task's is refused as stale.
	Fence int64

	Agent    string // claim
	AgentURL string // claim
	Slot     int    // claim

	TaskID    string // accept: the agent's own id
	SessionID string // accept, finish: the conversation it runs in

	Reason  Reason        // finish; lost: ReasonLost or ReasonInterrupted; stop: ReasonRunTimeout, ReasonStalled or ReasonBudget; undeliverable: ReasonInterrupted or none
	Message string        // finish, reject, lost, release, cancel, undeliverable, busy, refuse
	Delay   time.Duration // refuse, unsent: how long the task is not offered again

	// Withhold keeps the slot of a lost task from being offered until its
	// agent reports it free (design §3: agents that ignore fences).
	Withhold bool
	// MayHaveRun says that a lost task may have run although its agent never accepted it. Then
	// its OnLost decides.
	MayHaveRun bool

	// NotTried says that the claim of an unsent task was given back on purpose, such as for a
	// pause. It does not count as a claim without an answer.
	NotTried bool

	By          string   // cancel, release, edit: who requested it
	Waiting     bool     // cancel: only while it waits
	Queue       string   // move: where to
	Edit        *Edit    // edit: what changes
	Result      *Result  // finish, park: what the run left behind
	IgnoreGates bool     // unpark: let it run even if the account of its agent is not open or a budget is used up
	Parking     *Parking // park: the gate, and how the run continues
	// Account is what the run reports about the account that it spends, stored in the same
	// commit.
	Account *AccountEvent
}

// SlotAction says what a transition does to the slot that the task holds.
type SlotAction int

// The slot actions.
const (
	SlotKeep     SlotAction = iota // no change, or no slot
	SlotTake                       // claim
	SlotFree                       // the row is removed
	SlotWithhold                   // the row stays, marked, until the agent reports it free
)

// Change is a legal transition, ready to be stored.
type Change struct {
	// Task is the row after the transition. A store writes it if the stored Rev is still
	// Task.Rev. The store itself sets Rev and the fields that Order requires.
	Task Task
	Slot SlotAction
	// Order moves the task within its queue. For OrderBack the store sets EnqueuedAt to
	// Entry.At and assigns the next Place; for OrderTop it sets the Bias.
	Order Order
	// Request replaces the stored request and its environment; nil keeps them.
	Request *Request
	// Session binds Task.SessionID to Task.Agent.
	Session bool
	Result  *Result
	Account *AccountEvent // event of the account
	// Entry is written to the journal with the change.
	Entry Entry
}

// Entry is one line of the journal. Its JSON is what GET /api/events sends.
type Entry struct {
	Seq      int64     `json:"seq"` // without gaps in one store; set by the store
	At       time.Time `json:"at"`
	Kind     EventKind `json:"kind"`
	QueueID  string    `json:"queue_id,omitempty"`
	State    State     `json:"state,omitempty"` // after the event
	Reason   Reason    `json:"reason,omitempty"`
	Message  string    `json:"message,omitempty"`
	Queue    string    `json:"queue,omitempty"`
	Agent    string    `json:"agent,omitempty"`
	Fence    int64     `json:"fence,omitempty"`
	Attempts int       `json:"attempts,omitempty"`
	Source   Source    `json:"source,omitempty"`
	By       string    `json:"by,omitempty"`
	Owner    string    `json:"owner,omitempty"`    // of the task, or of the schedule
	Schedule string    `json:"schedule,omitempty"` // name of the schedule that it is about
	RetryOf  string    `json:"retry_of,omitempty"` // of a submit: the task that it repeats
	Account  string    `json:"account,omitempty"`  // the account that it is about
}

// SubmitEntry returns the entry of a task that was just stored.
func SubmitEntry(t *Task, now time.Time) Entry {
	return Entry{
		At: now, Kind: EventSubmit, QueueID: t.ID, State: t.State, Queue: t.Queue, Source: t.Source, Owner: t.Owner,
		RetryOf: t.RetryOf,
	}
}

// Partial returns what an entry says about its task, or the name and message of an agent.
func (e *Entry) Partial() Task {
	t := Task{
		ID: e.QueueID, State: e.State, Reason: e.Reason, Message: e.Message, Queue: e.Queue, Agent: e.Agent, Fence: e.Fence,
		Attempts: e.Attempts, Source: e.Source, Owner: e.Owner, CancelRequested: e.Kind == EventCancel,
	}
	if t.Queue == QueueCommands || t.Queue == QueueCalls {
		t.Mode = ModeTool
	}
	if t.State.Terminal() {
		t.EndedAt = e.At
	}
	return t
}

// Before returns the state before an entry, as far as its kind determines it; "" if unknown.
func (e *Entry) Before() State {
	switch e.Kind {
	case EventClaim, EventWaitTimeout, EventMove, EventEdit, EventUndeliverable:
		return Pending
	case EventAccept, EventBusy, EventRefuse, EventUnsent, EventReject:
		return Dispatching
	case EventUnpark:
		return Parked
	case EventFinish, EventLost, EventStop, EventRelease, EventPark:
		return Working
	case EventCancel:
		switch {
		case e.State.InFlight():
			return e.State
		case e.Fence != 0:
			return Working
		}
		return Pending
	}
	return ""
}
