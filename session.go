package signalbox

import "time"

// SessionState says whether a conversation can be continued.
type SessionState string

// The states of a session.
const (
	SessionActive   SessionState = "active"
	SessionArchived SessionState = "archived" // someone archived it; it can be restored
	SessionGone     SessionState = "gone"     // its agent no longer has it
)

// Session binds a conversation to the agent that holds it.
type Session struct {
	ID        string
	Agent     string
	Source    Source // of the task that began it; "" if unknown
	Owner     string // who began it: Principal.Key
	Title     string // preview of the first prompt
	State     SessionState
	Turns     int // executions that the agent accepted in it
	CreatedAt time.Time
	LastUsed  time.Time
	// Current says that chats of the agent continue in this session. At most one
	// session of an agent is current.
	Current bool
}

// Stale is the report of an execution that no longer holds its slot, because it was
// released or lost. It is kept separately and does not change the task.
type Stale struct {
	Fence   int64
	Agent   string
	TaskID  string // the agent's own id
	At      time.Time
	State   string // as the agent reports it: completed, failed, cancelled
	Message string
	Result  Result
}

// MaxStale is how many stale results are kept per task: the newest.
const MaxStale = 10
