package signalbox

import "time"

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
