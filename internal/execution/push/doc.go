// Package push dispatches waiting tasks to free slots of agents over HTTP and follows each
// task to its end.
//
//	engine ──Observe──▶ Dispatcher ──wake──▶ lane (one per agent)
//	                                           │ Claim, while slots are free
//	                                           ▼
//	                                          run (one per task): send, ask, follow, end
//
// It is driven by events: a submit, a freed slot, a message of an agent (wake.go). A tick
// is the backstop.
//
// What a missing answer means is decided here and nowhere else. Only a refused connection
// proves that an agent did not get a task. After any other missing reply the run asks the
// agent about the task until the agent answers, or has been silent for the slot lease
// (ask.go). Silence is measured by the monotonic clock, so a jump of the wall clock loses
// no task.
//
// An agent is offered nothing while it is held: it said busy, or reports work that is not
// from this director. Its own report frees it (availability.go). An execution that was
// taken away, by a release or a loss, cannot change its task any more. Its agent is told to
// stop it, and its final report is kept aside (orphan.go).
//
// Isolated executions (the bypass) have slots of their own beside those of their agent.
// limits.go measures what execution.Limits decides about; talk.go chooses the session of a
// chat.
//
// If several directors share a store, this applies to the agents that this one holds
// (Options.Holds, Gained, Lost); other agents are only asked for their status (term.go).
//
// agenttest is a scriptable agent for tests.
package push
