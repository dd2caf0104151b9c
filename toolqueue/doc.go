// Package toolqueue bounds how many calls of a tool run side by side, over
// all sessions of a process: named queues with a capacity each, first come,
// first served.
//
// A queue has slots. Acquire takes one, or waits in line for it, and Release
// hands it to the first in line. A caller that gives up, because its context
// ends or its wait is over, leaves the line at once and never touches a slot.
//
//	queues := toolqueue.New(toolqueue.Hooks{})
//	err := queues.Configure(map[string]toolqueue.Config{"browser": {Concurrent: 1}})
//	permit, err := queues.Acquire(ctx, "browser", toolqueue.Who{Tool: "browser__click", Session: "s1"})
//	defer permit.Release()
//
// A slot can also be held by a session for longer than one call: see Lease.
//
// A queue can be that of several processes: see Queues.Share. Its slots and its
// line are then kept in a place that all of them reach, a ticket for each call
// (far.go); a process that does not reach it any more is told what it has lost
// before another can have it (shared.go).
//
// While nobody waits, a slot of a queue of this process is taken and given back
// without a lock and without reading a clock (slot.go). Once somebody does, the
// queue is closed to that: whoever gives back a slot hands it to the first in
// line, under the lock (queue.go). Lining up, giving up and handing on cost the
// same however many wait, for the line runs through the waiters themselves
// (line.go).
package toolqueue
