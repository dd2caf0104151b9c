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
package toolqueue
