// Package signalbox defines the domain types of Signalbox: tasks and their
// states, queues, agents, slots, leases and fences. Next is the only table of
// legal transitions. The package is pure data and pure functions and imports
// only the standard library. It reads no clock and does no I/O.
//
// # The task
//
// A task row is the only place where a task's state lives.
//
//	submit ─▶ pending ─claim─▶ dispatching ─accepted─▶ working ─▶ completed │ failed │ timeout
//	            ▲  │                │                     │
//	            │  └─ wait timeout ─┼─▶ timeout           └─cancel─▶ cancelling ─▶ cancelled
//	            │                   │                                  (or completed, failed:
//	            ├── agent busy (409): to the back of its queue,         what the agent says first)
//	            │                   │   costs no attempt
//	            ├── refused before it was sent, 5xx, never seen: attempts+1, backoff
//	            └──               … attempts = max ─▶ failed        4xx ─▶ failed at once
//
//	cancel of a pending task ─▶ cancelled
//	cancel while dispatching is sticky: it wins when the reply comes
//
// Terminal states are final. Each carries a typed Reason and a message that
// is never empty.
//
// # Time
//
// Every time is UTC, truncated to the millisecond, and passed in by the caller.
package signalbox
