// Package local makes tool calls into durable tasks and runs them: it is the
// director's own executor.
//
//	Submit ─▶ queue commands ─▶ a slot of commands@instance ─▶ Gateway.Call ─▶ the command
//	CallOrPromote ─▶ (in line of its tool queue for too long) ─▶ queue calls ─▶ a slot of
//	          calls@instance ─▶ the same call, in the same place in line
//
// A task that is dispatching has a slot and has not begun to run: it waits for
// its tool queue, or was claimed a moment ago. It becomes working, durably,
// before the tool runs; so after a crash a task that is dispatching has never
// run and can be kept, and one that is working may have and falls under its
// tool's restart policy.
//
// Where several directors are over one store, each has an executor. The tasks of
// one that died are put away by another; one whose lease is over ends what it
// runs before that (others.go).
//
// What holds for any execution is in package execution.
package local
