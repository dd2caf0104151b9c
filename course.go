package signalbox

import (
	"slices"
	"time"
)

// Requeue is a claim that came to nothing: the task went back to its queue.
type Requeue struct {
	Kind      EventKind // busy, refuse, unsent, lost or release
	Agent     string    // that had the claim
	ClaimedAt time.Time
	At        time.Time
	Message   string // why, at most MaxRequeueMessage bytes
}

// Bounds on what a row says of its requeues.
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

// LogTime says when the log of a run had grown to a position.
type LogTime struct {
	Seq int64     `json:"seq"` // position in the log of what came then
	At  time.Time `json:"at"`
}

// ToolCall is a call of a tool that has ended.
type ToolCall struct {
	Tool    string        `json:"tool"`
	Queue   string        `json:"queue,omitempty"` // the tool queue that it went through
	Outcome string        `json:"outcome"`         // ok, error, cancelled or an error code
	At      time.Time     `json:"at"`              // when it was made
	Waited  time.Duration `json:"waited"`          // for a slot; 0: it did not have to
	Took    time.Duration `json:"took"`            // in all, with the wait
}

// Bounds on what a result says of the course of its run.
const (
	MaxLogTimes  = 600
	MaxToolCalls = 200
)
