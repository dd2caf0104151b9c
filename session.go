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
