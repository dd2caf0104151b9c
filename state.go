package signalbox

// State is the state of a task in its life cycle.
type State string

// The states of a task. Completed, Failed, Cancelled and Timeout are
// terminal and final.
const (
	Pending     State = "pending"     // waits in its queue
	Dispatching State = "dispatching" // claimed for a slot; the agent has not answered yet
	Working     State = "working"     // the agent accepted it
	Cancelling  State = "cancelling"  // someone asked to stop it; the agent has not confirmed
	Parked      State = "parked"      // its run was ended at a gate (Task.Parking) and continues when that opens
	Completed   State = "completed"
	Failed      State = "failed"
	Cancelled   State = "cancelled"
	Timeout     State = "timeout"
)

// States lists all states in the order of a task's life.
func States() []State {
	return []State{Pending, Dispatching, Working, Cancelling, Parked, Completed, Failed, Cancelled, Timeout}
}

// Terminal reports whether no transition leads out of s.
func (s State) Terminal() bool {
	return s == Completed || s == Failed || s == Cancelled || s == Timeout
}

// InFlight reports whether a task in state s holds a slot.
func (s State) InFlight() bool { return s == Dispatching || s == Working || s == Cancelling }

// Waiting reports whether a task in state s waits in its queue. A parked task also waits at a
// gate and cannot be claimed.
func (s State) Waiting() bool { return s == Pending || s == Parked }

// Valid reports whether s is one of the states above.
func (s State) Valid() bool { return s.Waiting() || s.InFlight() || s.Terminal() }

// Reason says why a task ended, for programs; Task.Message says it for people.
// It is empty until the task is terminal.
type Reason string

// The reasons a task can end for.
const (
	ReasonCompleted      Reason = "completed"       // the agent reported it
	ReasonAgentError     Reason = "agent_error"     // the agent ran it and reported an error
	ReasonExitNonzero    Reason = "exit_nonzero"    // the command ended with a code other than 0
	ReasonWaitTimeout    Reason = "wait_timeout"    // it waited longer than it was allowed to
	ReasonDispatchFailed Reason = "dispatch_failed" // it could not be dispatched to an agent
	ReasonRejected       Reason = "rejected"        // an agent answered 4xx: the request itself is wrong
	ReasonRunTimeout     Reason = "run_timeout"     // it ran longer than timeout_seconds
	ReasonLost           Reason = "lost"            // its agent went silent or no longer knows it
	ReasonReleased       Reason = "released"        // someone took the slot away from it
	ReasonCancelled      Reason = "cancelled"       // someone cancelled it
	ReasonInterrupted    Reason = "interrupted"     // its agent was restarted in the middle
	ReasonStalled        Reason = "stalled"         // it made no progress for too long
	ReasonBudget         Reason = "budget"          // what it may spend is used up
	ReasonChecks         Reason = "checks"          // its work did not pass its checks
)

// Reasons lists all reasons.
func Reasons() []Reason {
	return []Reason{
		ReasonCompleted, ReasonAgentError, ReasonExitNonzero, ReasonWaitTimeout, ReasonDispatchFailed,
		ReasonRejected, ReasonRunTimeout, ReasonLost, ReasonReleased, ReasonCancelled, ReasonInterrupted,
		ReasonStalled, ReasonBudget, ReasonChecks,
	}
}

// Valid reports whether r is one of the reasons above.
func (r Reason) Valid() bool {
	_, ok := endState[r]
	return ok
}

// End returns the terminal state in which a task with reason r ends.
func (r Reason) End() State { return endState[r] }

var endState = map[Reason]State{
	ReasonCompleted:      Completed,
	ReasonAgentError:     Failed,
	ReasonExitNonzero:    Failed,
	ReasonWaitTimeout:    Timeout,
	ReasonDispatchFailed: Failed,
	ReasonRejected:       Failed,
	ReasonRunTimeout:     Timeout,
	ReasonLost:           Failed,
	ReasonReleased:       Failed,
	ReasonCancelled:      Cancelled,
	ReasonInterrupted:    Failed,
	ReasonStalled:        Failed,
	ReasonBudget:         Failed,
	ReasonChecks:         Failed,
}

// plain holds the default messages: a terminal message is never empty (seed
// execution-queue: empty error texts were its largest class of error).
var plain = map[Reason]string{
	ReasonCompleted:      "completed",
	ReasonAgentError:     "the agent reported an error without a text",
	ReasonExitNonzero:    "the command ended with a code other than 0",
	ReasonWaitTimeout:    "waited longer than its wait timeout",
	ReasonDispatchFailed: "could not be dispatched to an agent",
	ReasonRejected:       "the agent refused the request",
	ReasonRunTimeout:     "ran longer than its timeout",
	ReasonLost:           "its agent went silent or no longer knows it",
	ReasonReleased:       "its slot was released",
	ReasonCancelled:      "cancelled",
	ReasonInterrupted:    "its agent was restarted before the task ended",
	ReasonStalled:        "made no progress for too long",
	ReasonBudget:         "what it may spend is used up",
	ReasonChecks:         "its work did not pass its checks",
}
