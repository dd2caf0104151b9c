// Package execution holds the rules for following an execution: a claimed task, from its
// offer to its end. They are written once, for three transports:
//
//	push    the director calls the agent over HTTP
//	pull    the agent asks for its tasks and reports on them
//	local   the director's own executor of tool calls
//
// push and pull each have a Registry of their agents: which are known, which have free
// slots, who is woken for what, and what runs. Its lock, Mu, guards all of it. What a
// transport knows beyond that is in its own record of an agent, which embeds a Lane
// (Agent).
//
//   - Registry wakes an agent for a waiting task (claim.go), claims for it, renews leases, and handles agents that are gone. Backstop finds what no event announced.
//   - Lane is the state of one agent: Presence says whether it is connected, Health whether it is offered anything after failures, Bypass whether its bypass queue is checked. OfferReply applies what an agent's answer to an offer says about the agent.
//   - Run is the state of one execution: its row, its log, when it was last heard of, and the mask for what its agent says.
//   - Limits decides which limit ends a run, and Enforce stops it.
//   - Offer is a task as its agent gets it. Refusal is the agent's answer that it does not take it, Outcome parses its final report. Mask hides the task's env values in whatever an agent says.
//   - Settle retries a change until it is stored. Decided recognizes the error that another change came first.
//   - Maintenance runs chores on request, and rounds by time.
//
// Invariants for every transport:
//
//   - A write names the fence of its execution. A stale one changes nothing; a final report is kept aside.
//   - Silence is measured by the monotonic clock, per execution. Only the slot lease, a limit or the agent's own report ends a run.
//   - What cannot be masked is withheld.
package execution
