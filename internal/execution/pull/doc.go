// Package pull serves agents that nobody can connect to: they ask for their
// tasks, at any director, and report how these fare.
//
//	POST …/claim ──▶ poll ─ review ─▶ stop, ask, the task whose answer got lost
//	                  │ ▲    └─ claim ─▶ a task
//	                  ▼ │
//	                 parked, until a task becomes ready, something about this
//	                 agent changes, or the wait is over
//
//	POST …/report ──▶ the rules of the engine, then the answer
//
// What must hold:
//
//   - Nothing that decides is in the memory of a director: an agent may come to
//     another one with each request. What is remembered here of tasks in flight
//     (run) is a hint of what to read in the store.
//   - A task that was given to the agent, and that the agent does not name among
//     its runs, is given again with the same fence while the agent has not
//     accepted it. After that the agent is asked: only its own word that it does
//     not know the task, or the slot lease, ends it.
//   - A report is answered when it is stored. What comes twice changes nothing.
//   - Waiting agents cost nothing while nothing is to be done: a task that becomes
//     ready wakes one of those that may take it, the one that has waited longest.
//
// Which limit ends a run that goes on for too long is decided by the agent's own
// clock, as it says how long a run has run and been silent: whichever director it
// says it to.
package pull
