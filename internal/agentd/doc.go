// Package agentd is the agent daemon. It executes the tasks that a director
// gives it, one at a time per slot, and serves the agent HTTP API of package
// api.
//
// The states of a run:
//
//	POST /task ─▶ reserved ─ledger on disk─▶ 201 ─▶ working ─▶ completed │ failed │ cancelled
//	                 │                                 │
//	                 └─ the old run of a voided fence  └─ its processes, with proof that none lives,
//	                    is stopped first                  before the slot is free again
//
// Invariants:
//
//   - The run, with its fence, is in the synced ledger before the 201, so that
//     the same queue_id and fence is one execution even across a crash of the
//     daemon or a power cut. The next start ends every run as interrupted that is
//     in the ledger without a complete record and was not forgotten.
//   - A ledger slot is overwritten only after its fence is synced in fences.json
//     and its run is forgotten or has a synced record. So fences never decrease.
//   - Neither an accept nor the end of a run waits for more than that one sync.
//     Records are written without a sync, and old runs are removed after the end was
//     reported.
//   - A lane (a slot, or an isolated run) has at most one run whose processes
//     may be alive. A run that cannot be killed keeps its lane.
//   - The working directory and the CLI's state folder are locked with flock on
//     the folder itself, so that two daemons over the same folder take turns as
//     well.
//   - Terminal states are final; the newest 100 are kept.
//
// Runs of the kinds demo and llm are functions within the daemon. They use
// only the daemon's own folder. What stops a program stops them through their
// context; two runs of one conversation take turns (talks).
//
// Prompts and env values are not written to records.
package agentd
