// Package execution holds the rules for following an execution: a task that was
// claimed, from its offer to its end. They are written here once, for three
// transports:
//
//	push    the director calls the agent over HTTP
//	pull    the agent asks for its tasks and reports how they fare
//	local   the director's own executor of tool calls
//
// A transport claims (engine.Claim), offers what it claimed, asks what became of
// it, stops it, and makes it void. It owns its goroutines and its lock. The lock
// guards the values below, which do nothing by themselves:
//
//   - Run is what is known of one execution: its row, its log, when it was heard
//     of, and what must be hidden in what is said of it. Renewable lists the runs
//     whose leases are renewed, Rows what is in flight by the store.
//   - Presence says whether an agent is there, Health whether it is offered
//     anything after it has failed. View adds both to what the engine shows.
//   - Limits decides which limit ends a run, and Enforce stops it.
//   - Offer is a task as an agent gets it. Refusal is its answer that it does not
//     take it, Outcome reads its last word. Mask hides the values of the task's
//     env in all that an agent says.
//   - Settle stores a change that must not get lost. Decided tells an error that
//     means that somebody else decided first.
//   - Maintenance runs what is due by time, as a backstop behind the events.
//
// What must hold, whichever transport it is:
//
//   - A write names the fence of its execution. One that comes too late changes
//     nothing; its last word is kept aside.
//   - Silence is measured by the monotonic clock, per execution. Only the slot
//     lease, a limit or the agent's own word ends a run.
//   - What cannot be masked is withheld.
package execution

import "time"

// Defaults of all transports.
const (
	DefaultSessionGrace = 60 * time.Second // absence of an agent before its session tasks are dealt with
	DefaultRunGrace     = 30 * time.Second // how long a run may overstay its timeout_seconds before it is stopped from here
)
