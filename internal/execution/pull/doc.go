// Package pull serves agents that nobody can connect to: they ask any director for tasks,
// and report on them.
//
//	POST …/claim ──▶ poll ─ review ─▶ runs to stop, runs to report on, a task whose answer got lost
//	                  │ ▲    └─ claim ─▶ a task
//	                  ▼ │
//	                 parked, until a task becomes ready, something about this
//	                 agent changes, or the wait is over
//
//	POST …/report ──▶ the rules of the engine, then the answer
//
// Invariants:
//
//   - No decision depends on a director's memory, since each request of an agent may go to another director. What is remembered here of tasks in flight (run) is only a hint what to read in the store.
//   - A task that was given to the agent and is not among the runs that it names is given again with the same fence, until the agent has accepted it. After that the agent is asked: only its report that it does not know the task, or the slot lease, ends it.
//   - A report is answered when it is stored. A duplicate changes nothing.
//   - Waiting agents cost nothing while there is nothing to do: a task that becomes ready wakes one of those that may claim it, the one that has waited longest.
//
// The run and stall limits are checked against the agent's own clock, from the durations
// that it reports, whichever director gets the report.
package pull
