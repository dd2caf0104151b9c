// Package signalbox holds the words of Signalbox as types: tasks and their
// states, queues, agents, slots, leases and fences, and the one table of
// legal transitions (Next). It is pure data and pure functions over the
// standard library; it reads no clock and does no I/O.
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
// Every time is UTC, cut to the millisecond, and handed in by the caller.
package signalbox
