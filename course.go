package signalbox

import (
	"slices"
	"time"
)

// Requeue records a claim that failed: the task went back to its queue.
type Requeue struct {
	Kind      EventKind // busy, refuse, unsent, lost or release
	Agent     string    // that held the claim
	ClaimedAt time.Time
	At        time.Time
	Message   string // why, at most MaxRequeueMessage bytes
}

// Bounds on the requeues that a row keeps.
const (
	MaxRequeues       = 16
	MaxRequeueMessage = 200 // bytes
)

// addRequeue records a return to the queue.
func (t *Task) addRequeue(r Requeue) {
	var list []Requeue
	if t.Requeues != nil {
		list = *t.Requeues
	}
	list = append(slices.Clone(list[max(0, len(list)-MaxRequeues+1):]), r)
	t.Requeues = &list
}

// LogTime says when the log of a run reached a position.
type LogTime struct {
	Seq int64     `json:"seq"` // position in the log of what arrived at that time
	At  time.Time `json:"at"`
}

// ToolCall is a tool call that has ended.
type ToolCall struct {
	Tool    string        `json:"tool"`
	Queue   string        `json:"queue,omitempty"` // the tool queue that it went through
	Outcome string        `json:"outcome"`         // ok, error, cancelled or an error code
	At      time.Time     `json:"at"`              // when it was made
	Waited  time.Duration `json:"waited"`          // for a slot; 0: it did not wait
	Took    time.Duration `json:"took"`            // in total, with the wait
}

// Bounds on the log times and tool calls that a result keeps.
const (
	MaxLogTimes  = 600
	MaxToolCalls = 200
)
