// Package agentd is the agent daemon: it executes the tasks that a director
// gives it, one at a time in each slot, and serves the agent HTTP API of
// package api.
//
// A run goes through
//
//	POST /task ─▶ reserved ─record on disk─▶ 201 ─▶ working ─▶ completed │ failed │ cancelled
//	                 │                                 │
//	                 └─ the old run of a voided fence  └─ its processes, with proof that none lives,
//	                    is stopped first                  before the slot is free again
//
// What must hold:
//
//   - The record, with the fence, is on disk before the 201, so that the same
//     queue_id and fence is one execution also across a crash of the daemon.
//   - A lane (a slot, or an isolated run) has at most one run whose processes
//     may live. A run that cannot be killed keeps its lane.
//   - Working directory and CLI state folder are locked with flock on the
//     folder itself, so two daemons over the same folder take turns too.
//   - Terminal states are final; the newest 100 are kept.
//
// Prompts and env values are not written to records.
package agentd
