package gateway

import (
	"math"
	"slices"

	"github.com/signalbox-ai/signalbox/toolqueue"
)

// Calling tells of each execution whether a tool call of it waits or is under way.
func Calling(queues *toolqueue.Queues) func(execution string) bool {
	return func(execution string) bool {
		return slices.ContainsFunc(queues.All(math.MaxInt), func(s toolqueue.Status) bool {
			return slices.ContainsFunc(s.Holders, func(h toolqueue.Holder) bool { return h.Execution == execution && !h.Idle }) ||
				slices.ContainsFunc(s.Waiters, func(w toolqueue.Waiter) bool { return w.Execution == execution })
		})
	}
}
