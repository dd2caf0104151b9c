package store

import "github.com/signalbox-ai/signalbox"

const (
	// FenceStep is how far above what the store has given a report of an agent
	// raises the next fence. An agent whose fences are further ahead, as after a
	// restore, is caught up with by its next claims.
	FenceStep = 1 << 20
	// FenceAhead is how far ahead a report is believed at all: what this store
	// gave before a restore is not further. At a thousand claims a second it is
	// 35 years.
	FenceAhead = 1 << 40
)

// NextFence returns the fence of a claim: one that is above last, the highest
// that the store has given, and above what the agent has seen, as far as that is
// believed. Otherwise one agent could use up the numbers of all.
//
// Errors: CodeValidation with the field highest_fence.
func NextFence(last, above int64) (int64, error) {
	if above-last > FenceAhead {
		return 0, signalbox.Invalid("highest_fence",
			"the agent reports fence %d, and this store has given %d at most: it cannot have seen that; empty the agent's data folder and start it anew", above, last)
	}
	return max(last, min(above, last+FenceStep)) + 1, nil
}
