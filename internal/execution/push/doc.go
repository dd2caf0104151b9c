// Package push brings waiting tasks and free slots together and follows
// each task to its end.
//
//	engine ──Observe──▶ Dispatcher ──wake──▶ lane (one an agent)
//	                                           │ Claim, as long as slots are free
//	                                           ▼
//	                                          run (one a task): send, ask, follow, end
//
// It is driven by events: a submit, a freed slot, an agent that was heard
// (wake.go). A tick stands behind them as a backstop.
//
// What a missing answer means is decided here and nowhere else. Only a
// refused connection proves that an agent did not get a task. After any other
// missing reply the run asks the agent about the task until the agent
// answers, or has been silent for the slot lease (ask.go). Silence is measured
// by the monotonic clock, so a wall clock that jumps loses nobody.
//
// An agent is offered nothing while it is held: it said busy, or says that it
// works at something that is not from here. Its own word frees it (availability.go).
// An execution that was taken away, by a release or a loss, has no say any
// more. Its agent is told to stop it, and its last word is kept aside
// (orphan.go).
//
// Isolated executions, the bypass, have slots of their own beside those of
// their agent (bypass.go). What limits.go measures of a run, execution.Limits
// decides about; which conversation a chat goes on with, in talk.go.
//
// Where several directors are over one store, all of this is done for the agents
// that this one holds (Options.Holds, Gained, Lost); others are asked for their
// status, and no more (term.go).
//
// agenttest is an agent that does what a test tells it.
package push
