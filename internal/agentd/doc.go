// Package agentd is the agent daemon: it executes the tasks that a director
// gives it, one at a time in each slot, and serves the agent HTTP API of
// package api.
//
// A run goes through
//
//	POST /task ─▶ reserved ─ledger on disk─▶ 201 ─▶ working ─▶ completed │ failed │ cancelled
//	                 │                                 │
//	                 └─ the old run of a voided fence  └─ its processes, with proof that none lives,
//	                    is stopped first                  before the slot is free again
//
// What must hold:
//
//   - The run, with its fence, is in the synced ledger before the 201, so that
//     the same queue_id and fence is one execution also across a crash of the
//     daemon or a power cut. Whatever is in the ledger without a whole record
//     and was not forgotten is interrupted by the next start.
//   - A ledger slot is overwritten only once its fence is synced in fences.json
//     and its run is forgotten or has a synced record. So fences never go back.
//   - Neither an accept nor the end of a run waits for more than that one sync;
//     records are written without one, and old runs removed after the end is told.
//   - A lane (a slot, or an isolated run) has at most one run whose processes
//     may live. A run that cannot be killed keeps its lane.
//   - Working directory and CLI state folder are locked with flock on the
//     folder itself, so two daemons over the same folder take turns too.
//   - Terminal states are final; the newest 100 are kept.
//
// Runs of the kinds demo and llm are functions of the daemon. They use no
// folder but its own, and what stops a program stops them by their context;
// two of one conversation take turns (talks).
//
// Prompts and env values are not written to records.
package agentd
