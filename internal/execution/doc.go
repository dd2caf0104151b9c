// Package execution holds the rules for following an execution: a task that was
// claimed, from its offer to its end. They are written here once, for three
// transports:
//
//	push    the director calls the agent over HTTP
//	pull    the agent asks for its tasks and reports how they fare
//	local   the director's own executor of tool calls
//
// Of agents, push and pull each have a Book: who is known, who has room, what waits
// for whom and what runs. Its lock guards all of it. What a transport knows besides
// of an agent is in a record of its own, with a Lane in it (Agent).
//
//   - Book wakes an agent for a task that waits (claim.go), claims for it, shows it,
//     renews leases, and deals with agents that are gone. Backstop finds what no event
//     told of.
//   - Lane is what is known of one agent: Presence says whether it is there, Health
//     whether it is offered anything after it has failed, Bypass whether its bypass
//     queue is looked at. Offered takes in what its answer to an offer says of it.
//   - Run is what is known of one execution: its row, its log, when it was heard
//     of, and what must be hidden in what is said of it.
//   - Limits decides which limit ends a run, and Enforce stops it.
//   - Offer is a task as an agent gets it. Refusal is its answer that it does not
//     take it, Outcome reads its last word. Mask hides the values of the task's
//     env in all that an agent says.
//   - Settle stores a change that must not get lost. Decided tells an error that
//     means that somebody else decided first.
//   - Maintenance does chores that events ask for, and rounds by time.
//
// What must hold, whichever transport it is:
//
//   - A write names the fence of its execution. One that comes too late changes
//     nothing; its last word is kept aside.
//   - Silence is measured by the monotonic clock, per execution. Only the slot
//     lease, a limit or the agent's own word ends a run.
//   - What cannot be masked is withheld.
package execution
