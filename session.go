package signalbox

import "time"

// SessionState says whether a conversation can be gone on with.
type SessionState string

// The states of a session.
const (
	SessionActive   SessionState = "active"
	SessionArchived SessionState = "archived" // someone put it away; it can be restored
	SessionGone     SessionState = "gone"     // its agent no longer has it
)

// Session binds a conversation to the agent that holds it.
type Session struct {
	ID        string
	Agent     string
	Source    Source // of the task that began it; "" where that is not known
	Owner     string // who began it: Principal.Key
	Title     string // preview of the first prompt
	State     SessionState
	Turns     int // executions that the agent accepted in it
	CreatedAt time.Time
	LastUsed  time.Time
	// Current says that it is the one that chats of the agent go on with. At
	// most one session of an agent is.
	Current bool
}

// Stale is what an execution said after it no longer held its slot: it was
// released or lost. It is kept aside and changes nothing.
type Stale struct {
	Fence   int64
	Agent   string
	TaskID  string // the agent's own id
	At      time.Time
	State   string // as the agent has it: completed, failed, cancelled
	Message string
	Result  Result
}

// MaxStale bounds the stale results that are kept of one task, the newest.
const MaxStale = 10
