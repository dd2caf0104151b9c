// Package local runs tool calls as durable tasks: it is the director's own executor.
//
//	Submit ─▶ queue commands ─▶ a slot of commands@instance ─▶ Gateway.Call ─▶ the command
//	CallOrPromote ─▶ (too long in its tool queue) ─▶ queue calls ─▶ a slot of
//	          calls@instance ─▶ the same call, in the same place of its tool queue
//
// A dispatching task has a slot and has not started: it waits for its tool queue, or was
// just claimed. It becomes working, durably, before the tool runs; so after a crash a
// dispatching task has certainly not run and can be kept, while a working one may have run
// and falls under its tool's restart policy.
//
// If several directors share a store, each has an executor. The tasks of one that died are
// handled by another; one whose lease expires stops its runs before that (others.go).
//
// What holds for any execution is in package execution.
package local
